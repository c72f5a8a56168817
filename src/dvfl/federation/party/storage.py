"""What a party must not forget (its checkpoint, a host's tables, an owner's chunks), and its home on a disk."""

import hashlib
import json
import math
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load, load_file, save
from torch import Tensor

from dvfl.errors import RunFailed, UserError
from dvfl.files import remove_unfinished, sha256, write_bytes, write_json, writing

_MANIFEST, _TABLES = "checkpoint.json", "tables.json"
_FILES = ("checkpoint-a.safetensors", "checkpoint-b.safetensors")  # in turn, so that the one in force is never touched
_FORMAT = 1
_ATTEMPTS = 5
_MEND = "restore it, or remove the folder to begin anew"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Checkpoint(NamedTuple):
    """Tensors by name, and plain data."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


class TableArrays(NamedTuple):
    """One guest's row register at a host, in arrays that outlive the process."""

    values: NDArray[np.float32]  # (slots, width)
    incarnations: NDArray[np.int64]  # (slots,)
    steps: NDArray[np.int64]


class Storage(Protocol):
    """Where a party keeps things. After a kill, what was saved last is there whole."""

    def load(self) -> Checkpoint | None: ...
    def save(self, checkpoint: Checkpoint) -> None: ...
    def table(self, name: str, slots: int, width: int) -> tuple[TableArrays, bool]:
        """The arrays of that name as they were left; or zeros, and False, where none can be trusted."""

    def put(self, name: str, content: bytes) -> None: ...
    def get(self, name: str) -> bytes | None: ...
    def drop(self, prefix: str) -> None:
        """Forgets what was put under names that begin so."""

    def close(self) -> None:
        """Marks the tables as closed in good order."""


class DiskStorage:
    """A folder. A checkpoint is a safetensors file and the manifest that names it with its SHA-256."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: list[np.memmap[Any, Any]] = []
        with writing(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # data, weights, and a secret of alignment
            folder.chmod(0o700)
            remove_unfinished(folder)
            self._trusted = self._tables_are_whole()
            write_json(folder / _TABLES, {"boot": _boot(), "closed": False})

    def load(self) -> Checkpoint | None:
        manifest = _manifest(self._folder)
        if manifest is None:
            return None
        file, digest, values = manifest
        if file not in _FILES or not (self._folder / file).is_file() or sha256(self._folder / file) != digest:
            raise UserError(f"{self._folder / str(file)}: not the file that {_MANIFEST} names; {_MEND}")
        return Checkpoint(load_file(self._folder / file), values)

    def save(self, checkpoint: Checkpoint) -> None:
        file = self._folder / _FILES[self._in_force() == _FILES[0]]
        content = save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()})
        digest = hashlib.sha256(content).hexdigest()
        self._flush()
        with writing(file):
            write_bytes(file, content)
        with writing(self._folder / _MANIFEST):
            manifest = {"format": _FORMAT, "file": file.name, "sha256": digest, "values": checkpoint.values}
            write_json(self._folder / _MANIFEST, manifest)

    def table(self, name: str, slots: int, width: int) -> tuple[TableArrays, bool]:
        shapes = {"values": ((slots, width), np.float32), "incarnations": ((slots,), np.int64)}
        wanted = {f"{name}.{part}.table": of for part, of in {**shapes, "steps": ((slots,), np.int64)}.items()}
        whole = self._trusted and all(
            (self._folder / file).is_file() and (self._folder / file).stat().st_size == _size(*of)
            for file, of in wanted.items()
        )
        if not whole:
            self._make_room(wanted)
        arrays = []
        for file, (shape, dtype) in wanted.items():
            with writing(self._folder / file):
                arrays.append(np.memmap(self._folder / file, dtype, "r+", shape=shape))
        self._tables += arrays
        return TableArrays(*arrays), whole

    def put(self, name: str, content: bytes) -> None:
        with writing(self._folder / name):
            write_bytes(self._folder / name, content)

    def get(self, name: str) -> bytes | None:
        path = self._folder / name
        return path.read_bytes() if path.is_file() else None

    def drop(self, prefix: str) -> None:
        for path in self._folder.glob(f"{prefix}*"):
            with writing(path):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        self._flush()
        with writing(self._folder / _TABLES):
            write_json(self._folder / _TABLES, {"boot": _boot(), "closed": True})

    def _flush(self) -> None:
        with writing(self._folder):
            for table in self._tables:
                table.flush()

    def _in_force(self) -> str | None:
        with suppress(OSError, ValueError, KeyError):
            return str(json.loads((self._folder / _MANIFEST).read_text())["file"])
        return None

    def _make_room(self, wanted: dict[str, tuple[tuple[int, ...], Any]]) -> None:
        """Takes it all from the disk now: a page of a map for which there is no room would end the process."""
        with writing(self._folder):
            for file in wanted:
                (self._folder / file).unlink(missing_ok=True)
            size = sum(_size(*of) for of in wanted.values())
            if shutil.disk_usage(self._folder).free < size:
                raise RunFailed(f"{self._folder}: {size / 1e6:.0f} MB are needed for tables and not free; make room")
            for file, of in wanted.items():
                _reserve(self._folder / file, _size(*of))

    def _tables_are_whole(self) -> bool:
        """Closed in good order, or left by a process that was killed since the machine was started.

        A killed process leaves what it wrote to the system, which still has it. After a loss of power pages may be of
        different ages, so nothing in them can be believed.
        """
        with suppress(OSError, ValueError):
            left = json.loads((self._folder / _TABLES).read_text())
            return bool(left["closed"]) or left["boot"] == _boot()
        return False


def saved_values(folder: Path) -> dict[str, Any] | None:
    """The plain data of the checkpoint in a folder, which may be in use; nothing there is touched."""
    manifest = _manifest(folder)
    return None if manifest is None else manifest[2]


def saved_checkpoint(folder: Path) -> Checkpoint | None:
    """The whole checkpoint in a folder, which may be in use; nothing there is touched."""
    for attempt in range(_ATTEMPTS):
        manifest = _manifest(folder)
        if manifest is None:
            return None
        file, digest, values = manifest
        with suppress(OSError):
            content = (folder / file).read_bytes()
            if hashlib.sha256(content).hexdigest() == digest:
                return Checkpoint(load(content), values)
        time.sleep(0.05 * attempt)  # its owner has just saved twice
    raise UserError(f"{folder / file}: not the file that {_MANIFEST} names; {_MEND}")


def _manifest(folder: Path) -> tuple[str, str, dict[str, Any]] | None:
    """Which file is in force, its SHA-256, and the plain data."""
    path = folder / _MANIFEST
    if not path.exists():
        return None
    try:
        manifest = json.loads(path.read_text())
        version, file, digest, values = (manifest[key] for key in ("format", "file", "sha256", "values"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: no checkpoint ({error}); {_MEND}") from None
    if version != _FORMAT:
        raise UserError(f"{path}: format {version}; this version reads {_FORMAT}")
    return file, digest, values


def _size(shape: tuple[int, ...], dtype: Any) -> int:
    return math.prod(shape) * int(np.dtype(dtype).itemsize)


def _boot() -> str:
    return _BOOT.read_text().strip() if _BOOT.exists() else f"unknown, process {os.getpid()}"


def _reserve(path: Path, size: int) -> None:
    """A file of zeros of that size; where the system can, with room on the disk for every page of it."""
    with path.open("wb") as file:
        if sys.platform == "linux":
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
