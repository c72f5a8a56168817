"""A file as it must be, and whether bytes are that file."""

import gzip
import hashlib
import io
import zlib
from dataclasses import dataclass

LIMIT = 1 << 26  # bytes, above every file here: whatever lies in a place or comes from a server, memory holds


@dataclass(frozen=True)
class File:
    """What is known of a file. One that may be compressed with gzip is described by its uncompressed bytes."""

    name: str
    sha256: str
    size: int | None = None  # bytes; None where the checksum alone is known


class NotTheFile(Exception):
    """Why bytes are not the file they should be, to follow its path or address."""


def checked(content: bytes, file: File) -> bytes:
    """The uncompressed bytes, if they are the file's."""
    compressed = content.startswith(b"\x1f\x8b")
    try:
        raw = gzip.GzipFile(fileobj=io.BytesIO(content)).read(LIMIT + 1) if compressed else content
    except (OSError, EOFError, zlib.error) as error:
        raise NotTheFile(f"is truncated or broken ({' '.join(str(error).split())})") from error
    state = " uncompressed" if compressed else ""
    if file.size is not None and len(raw) != file.size:
        raise NotTheFile(f"has {len(raw)} bytes{state}, expected {file.size}: truncated, or another file")
    found = hashlib.sha256(raw).hexdigest()
    if found != file.sha256:
        raise NotTheFile(f"has sha256 {found}{state}, expected {file.sha256}")
    return raw
