"""Finds a data set's files in a given folder, `$DVFL_DATA`, the cache or at their source; checks and reads them."""

import io
import os
from pathlib import Path

import numpy as np

from dvfl.data.sets.catalogue import SOURCES, Published, Source
from dvfl.data.sets.checksums import LIMIT, File, NotTheFile, checked
from dvfl.data.sets.conversion import Arrays, content_sha256
from dvfl.data.sets.fetch import FetchFailed, fetch
from dvfl.errors import UserError
from dvfl.files import write_bytes


def read_arrays(name: str, data_dir: Path | None = None) -> Arrays:
    """The arrays of a data set, from the first place that has its prepared file or its public ones.

    Public files lie in the place itself or in a folder there with the data set's name, plain or compressed.
    """
    source, cache = SOURCES[name], cache_folder()
    for place in (data_dir, _environment_folder(), cache):
        if place is None:
            continue
        if source.prepared is not None and os.path.isfile(place / source.prepared.name):
            return _unpacked(place / source.prepared.name, source.prepared, source.page)
        if source.published is not None:
            paths = _found(place, name, source.published.files, may_lack=place == cache)
            if paths is not None:
                return _converted(paths, name, source.published, source.page)
    looked = f"{name}: {_wanted(source)} not in {_places(data_dir, cache)}"
    if source.published is None or source.published.address is None:
        raise UserError(f"{looked}; {source.advice}")
    address = source.published.address
    try:
        paths = _fetched(cache / name, source.published, address)
    except FetchFailed as failure:
        raise UserError(f"{looked}, and fetching from {address} failed: {failure}") from failure
    return _converted(paths, name, source.published, source.page)


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


def _wanted(source: Source) -> str:
    """What was looked for, with its verb."""
    public = [file.name for file in source.published.files] if source.published is not None else []
    if source.prepared is None:
        return f"{', '.join(public)} are"
    return f"{source.prepared.name}{' or ' if public else ''}{', '.join(public)} is"


def _found(place: Path, name: str, files: tuple[File, ...], *, may_lack: bool) -> dict[str, Path] | None:
    """Where the public files lie in this place; None where none of them does."""
    for folder in (place / name, place):
        paths = {file.name: path for file in files if (path := _present(folder, file.name)) is not None}
        if len(paths) == len(files):
            return paths
        # In the cache a fetch may have been cut short: what is missing is fetched. Elsewhere somebody should know.
        if paths and not may_lack:
            lacking = next(file.name for file in files if file.name not in paths)
            raise UserError(f"{folder} has {next(iter(paths))} but not {lacking}: {name} needs both")
    return None


def _present(folder: Path, name: str) -> Path | None:
    candidates = (folder / name, folder / f"{name}.gz")
    return next((path for path in candidates if os.path.isfile(path)), None)


def _fetched(folder: Path, published: Published, address: str) -> dict[str, Path]:
    """The files in the cache, those fetched that are not there yet; all arrive before one is written."""
    paths = {file.name: _present(folder, file.name) for file in published.files}
    arrived = {
        file.name: fetch(f"{address}{file.name}{published.suffix}", file)
        for file in published.files
        if paths[file.name] is None
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in arrived.items():
            write_bytes(folder / f"{name}{published.suffix}", content)
    except OSError as error:
        raise FetchFailed(f"the cache {folder} cannot be written ({error.strerror})") from error
    return {name: path or folder / f"{name}{published.suffix}" for name, path in paths.items()}


def _converted(paths: dict[str, Path], name: str, published: Published, page: str) -> Arrays:
    contents = {file.name: _read(paths[file.name], file, page) for file in published.files}
    read = ", ".join(map(str, paths.values()))
    try:
        arrays = published.convert(contents)
    except NotTheFile as error:
        raise UserError(f"{read} {error}; get it again ({page})") from error
    if published.content is not None and (found := content_sha256(arrays)) != published.content:
        raise UserError(
            f"{read}: converted, this is not {name} as prepared (sha256 of the arrays {found}, expected"
            f" {published.content}); the prepared file is right"
        )
    return arrays


def _unpacked(path: Path, prepared: File, page: str) -> Arrays:
    # From the bytes that were checked, not from the path: nothing can change in between.
    with np.load(io.BytesIO(_read(path, prepared, page)), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _read(path: Path, file: File, page: str) -> bytes:
    """The file's bytes, uncompressed, once they are known to be the right ones."""
    try:
        with path.open("rb") as opened:
            return checked(opened.read(LIMIT + 1), file)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
    except NotTheFile as error:
        raise UserError(f"{path} {error}; remove it or get it again ({page})") from error
