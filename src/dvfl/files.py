"""Files that appear whole or not at all: written under a temporary name, synced, renamed."""

import contextlib
import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from dvfl.errors import RunFailed

_MEND = {errno.ENOSPC: "make room", errno.EDQUOT: "make room", errno.EROFS: "make it writable"}


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Replaces `path` by `content` in one step; `private`: at no moment can another user read it."""
    with replacing(path, private=private) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Replaces `path` by the text in one step."""
    write_bytes(path, content.encode())


def write_json(path: Path, value: Any) -> None:
    """Replaces `path` by the value as JSON; infinities and NaN are refused, since JSON has none."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Gives a temporary path beside `path`; what the block wrote there takes `path`'s place when it ends well."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        if not private:
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Makes one line of what keeps `path` from being written: which file, why, and what to do."""
    try:
        yield
    except (OSError, SafetensorError) as error:  # safetensors writes in its own way
        number = error.errno if isinstance(error, OSError) else None
        why, mend = os.strerror(number) if number else error, _MEND.get(number or 0, "mend that")
        raise RunFailed(
            f"{path} cannot be written ({why}); what was saved before is kept: {mend} and start again"
        ) from error


def remove_unfinished(folder: Path) -> None:
    """Removes what processes were writing in a folder when they were killed; nobody may be writing there now."""
    for left in folder.glob(".*.????????"):  # as `replacing` names it
        left.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        read: Callable[[], bytes] = lambda: file.read(1 << 20)  # noqa: E731
        for piece in iter(read, b""):
            digest.update(piece)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
