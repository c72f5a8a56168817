"""Fetches MNIST from its public source: four idx files, checked by SHA-256, kept as one `.npz` in the cache."""

import gzip
import hashlib
import http.client
import io
import math
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dvfl.files import replacing, sha256, write_text

TIMEOUT_S = 20.0


class FetchFailed(Exception):
    """Why nothing could be fetched, in one line; the caller adds which data set it was."""


@dataclass(frozen=True)
class IdxFile:
    """One file of the public source; the checksum is of the uncompressed bytes."""

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def header(self) -> bytes:
        """The idx format: two zero bytes, type 8 (unsigned byte), the number of axes, each length big-endian."""
        return bytes((0, 0, 8, len(self.shape))) + np.array(self.shape, ">u4").tobytes()

    @property
    def size(self) -> int:
        return len(self.header) + math.prod(self.shape)


MNIST_FILES = {
    "x_train": IdxFile(
        "train-images-idx3-ubyte",
        (60000, 28, 28),
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "y_train": IdxFile(
        "train-labels-idx1-ubyte",
        (60000,),
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "x_test": IdxFile(
        "t10k-images-idx3-ubyte",
        (10000, 28, 28),
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "y_test": IdxFile(
        "t10k-labels-idx1-ubyte",
        (10000,),
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}


def fetch_mnist(address: str, path: Path) -> None:
    """Fetches the four files from under `address` and writes them as `path`, with its checksum in `path`.sha256.

    The bytes of a compressed `.npz` depend on the library that wrote it, so the prepared file's checksum cannot hold
    for ours: the contents are checked here, by the idx files' checksums, and the file later by the one noted.
    """
    arrays = {name: _idx(address.rstrip("/") + f"/{file.name}.gz", file) for name, file in MNIST_FILES.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            with temporary.open("wb") as out:
                np.savez_compressed(out, **arrays)  # type: ignore[arg-type]  # numpy also has a bool keyword
            # The note first: a file without its note would be taken for a broken copy of the prepared one.
            write_text(path.with_name(path.name + ".sha256"), f"{sha256(temporary)}  {path.name}\n")
    except OSError as error:
        raise FetchFailed(f"the cache {path.parent} cannot be written ({error.strerror})") from error


def _idx(address: str, file: IdxFile) -> NDArray[np.uint8]:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as reply:
            # Bounded, here and below: whatever the server sends, memory holds.
            compressed = reply.read(2 * file.size)
        raw = gzip.GzipFile(fileobj=io.BytesIO(compressed)).read(file.size + 1)
    except urllib.error.HTTPError as error:
        raise FetchFailed(f"{address} answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise FetchFailed(f"no connection ({error.reason})") from error
    except (OSError, http.client.HTTPException, EOFError, zlib.error) as error:
        raise FetchFailed(f"{address} did not arrive whole ({' '.join(str(error).split())})") from error
    found = hashlib.sha256(raw).hexdigest()
    if found != file.sha256:
        raise FetchFailed(f"{address} uncompressed has sha256 {found}, expected {file.sha256}")
    # The checksum vouches for the header too, so there is nothing left to parse.
    return np.frombuffer(raw, np.uint8, offset=len(file.header)).reshape(file.shape)
