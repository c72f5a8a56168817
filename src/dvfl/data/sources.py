"""Finds the prepared data files: a given folder, `$DVFL_DATA`, the user's cache, the public source; checks them."""

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dvfl.data.fetch import FetchFailed, fetch_mnist
from dvfl.errors import UserError


@dataclass(frozen=True)
class Source:
    """A prepared file as it must be, and where its contents were first published."""

    size: int  # bytes
    sha256: str
    address: str


SOURCES: Mapping[str, Source] = {
    "mnist.npz": Source(
        11_490_519,
        "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
    "credit_card.npz": Source(
        1_013_709,
        "3ab898dd9261aa73cfc6717efc5072f879bdb84232d7af6f4f7c9d0f9d63ae49",
        "https://archive.ics.uci.edu/dataset/350/default+of+credit+card+clients",
    ),
    "parkinsons.npz": Source(
        1_958_039,
        "98f303d07485c41521fe60aeb240320425a3a6d72f73a7319abe72b6c3dd3d27",
        "https://archive.ics.uci.edu/dataset/470/parkinson+s+disease+classification",
    ),
    "handwritten.npz": Source(
        2_147_261,
        "15a86c81b2339126de97b39d389e7bb5fb44b47da93fba761f5ea65478ca78c4",
        "https://archive.ics.uci.edu/dataset/72/multiple+features",
    ),
    "caltech7_reextracted.npz": Source(
        11_493_768,
        "8cbe4dca982033691079ff5cdc03dff29d4b7b487fd79531521ee754d8d68d67",
        "https://data.caltech.edu/records/mzrjq-6wc02",
    ),
}


def read_arrays(file: str, data_dir: Path | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of a prepared file, from the first place that has it."""
    path = find(file, data_dir)
    content = _checked(path, SOURCES[file], in_cache=path.parent == cache_folder())
    # From the bytes that were checked, not from the path: nothing can change in between.
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is not a readable .npz file ({_one_line(error)})") from error


def find(file: str, data_dir: Path | None = None) -> Path:
    """Where the prepared file lies, fetched into the cache if it lies nowhere and can be."""
    cache = cache_folder()
    for folder in (data_dir, _environment_folder(), cache):
        if folder is not None and (folder / file).is_file():
            return folder / file
    looked = f"{file} is not in {_places(data_dir, cache)}"
    address = SOURCES[file].address
    if file != "mnist.npz":
        raise UserError(f"{looked}; put the prepared file in one of them (its public source is {address})")
    try:
        fetch_mnist(address, cache / file)
    except FetchFailed as failure:
        raise UserError(f"{looked}, and fetching it from {address} failed: {failure}") from failure
    return cache / file


def cache_folder() -> Path:
    """`dvfl` in the user's cache; the XDG rules say that a relative `$XDG_CACHE_HOME` is to be ignored."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (configured if configured.is_absolute() else Path("~/.cache").expanduser()) / "dvfl"


def _environment_folder() -> Path | None:
    value = os.environ.get("DVFL_DATA", "")
    return Path(value) if value else None


def _places(data_dir: Path | None, cache: Path) -> str:
    environment = _environment_folder()
    given = f"the data folder {data_dir}" if data_dir else "the data folder (none given)"
    variable = f"$DVFL_DATA ({environment})" if environment else "$DVFL_DATA (not set)"
    return f"{given}, {variable} or the cache {cache}"


def _checked(path: Path, source: Source, *, in_cache: bool) -> bytes:
    """The file's bytes, if they are the published ones or, in our cache, the ones we converted and noted beside it."""
    mend = "remove it to fetch it again" if in_cache else "copy it again from its source"
    converted = _noted_checksum(path) if in_cache else None
    try:
        size = path.stat().st_size
        # The size first: it finds a truncated copy without reading it.
        if converted is None and size != source.size:
            raise UserError(
                f"{path} has {size} bytes, expected {source.size}: truncated or not the prepared file; {mend}"
            )
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    found = hashlib.sha256(content).hexdigest()
    if found not in (source.sha256, converted):
        raise UserError(f"{path} has sha256 {found}, expected {converted or source.sha256}; {mend}")
    return content


def _noted_checksum(path: Path) -> str | None:
    note = path.with_name(path.name + ".sha256")
    try:
        return note.read_text().split()[0]
    except (OSError, UnicodeDecodeError, IndexError):
        return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
