"""From the files that a data set's publisher gives out to the arrays of the prepared file, value for value."""

import hashlib
import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dvfl.data.sets.checksums import NotTheFile

Arrays = dict[str, NDArray[Any]]
Files = Mapping[str, bytes]  # contents by file name

IDX_FILES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
VIEWS = {"pix": 240, "fou": 76, "fac": 216, "zer": 47, "kar": 64, "mor": 6}  # columns of the handwritten numerals

# The groups of Parkinson's columns in their order, and how many columns each has.
_SPEECH_GROUPS = {
    "gender": 1,
    "Baseline Features": 21,
    "Intensity Parameters": 3,
    "Formant Frequencies": 4,
    "Bandwidth Parameters": 4,
    "Vocal Fold": 22,
    "MFCC": 84,
    "Wavelet Features": 182,
    "TQWT Features": 432,
}


def images(files: Files) -> Arrays:
    """MNIST and Fashion-MNIST: four idx files."""
    return {name: idx(files[file]) for name, file in IDX_FILES.items()}


def credit_card(files: Files) -> Arrays:
    """UCI's csv: a line of names, then ID, X1 .. X23 and Y."""
    table = _table(files["data.csv"], 30000, 25, skip=1, delimiter=",")
    return {"X": table[:, 1:24].astype(np.float32), "y": table[:, 24].astype(np.uint8)}


def parkinsons(files: Files) -> Arrays:
    """UCI's csv: lines of groups and of names, then id, gender, 752 features and class."""
    table = _table(files["pd_speech_features.csv"], 756, 755, skip=2, delimiter=",")
    return {
        "X": table[:, 1:754].astype(np.float32),
        "y": table[:, 754].astype(np.uint8),
        "subject_id": table[:, 0].astype(np.int16),
        "feature_group": np.repeat(list(_SPEECH_GROUPS), list(_SPEECH_GROUPS.values())),
    }


def handwritten(files: Files) -> Arrays:
    """UCI's six files of numbers without names or labels, 200 rows of each digit in turn."""
    views: Arrays = {
        view: _table(files[f"mfeat-{view}"], 2000, columns).astype(np.float32) for view, columns in VIEWS.items()
    }
    return {**views, "y": np.repeat(np.arange(10, dtype=np.uint8), 200)}


def idx(content: bytes) -> NDArray[np.uint8]:
    """The array of an idx file: two zero bytes, type 8 (unsigned byte), the number of axes, each length big-endian."""
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise NotTheFile("is no idx file of unsigned bytes")
    start = 4 + 4 * content[3]
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4))
    if len(content) != start + math.prod(shape):
        raise NotTheFile(f"has {len(content)} bytes, expected {start + math.prod(shape)} from its idx header")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def content_sha256(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and values, whatever file the arrays came from."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name].astype(arrays[name].dtype.newbyteorder("<"))
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _table(content: bytes, rows: int, columns: int, skip: int = 0, delimiter: str | None = None) -> NDArray[np.float64]:
    """The numbers of a text file. numpy rounds decimals to the nearest float, which pandas does not by default."""
    try:
        table = np.loadtxt(io.BytesIO(content), delimiter=delimiter, skiprows=skip, ndmin=2)
    except ValueError as error:
        raise NotTheFile(f"is not a table of numbers ({' '.join(str(error).split())})") from error
    if table.shape != (rows, columns):
        found = f"{table.shape[0]} rows of {table.shape[1]} columns"
        raise NotTheFile(f"has {found}, expected {rows} of {columns}")
    return table
