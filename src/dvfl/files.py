"""Files that appear whole or not at all: written under a temporary name, synced, renamed."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces `path` by `content` in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Replaces `path` by the text in one step."""
    write_bytes(path, content.encode())


def write_json(path: Path, value: Any) -> None:
    """Replaces `path` by the value as JSON; infinities and NaN are refused, since JSON has none."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`; what the block wrote there takes `path`'s place when it ends well."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


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
