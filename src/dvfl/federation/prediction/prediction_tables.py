"""Lists of ids from files, and predictions as a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from dvfl.align.ids import from_objects
from dvfl.data.tables.blocks import read_ids
from dvfl.data.tables.reading import SUFFIXES, is_parquet
from dvfl.errors import UserError
from dvfl.federation.protocol.predictions import GuestPart, Prediction
from dvfl.files import replacing, writing

_TEXT = ".txt"


class Ids(NamedTuple):
    """Ids in the order of their file."""

    ids: list[str]
    lines: list[int]  # where each stands: lines of a text, rows of a Parquet file


def read_list(path: Path, id_column: str) -> Ids:
    """The ids in a CSV or Parquet file with that column, or in a text with one a line; repeated ones are welcome."""
    if path.name.lower().endswith(_TEXT):
        return _read_text(path)
    if not path.name.lower().endswith(SUFFIXES):
        raise UserError(f"{path}: '{path.suffix}' is no kind of list we read; use {', '.join((*SUFFIXES, _TEXT))}")
    column = read_ids(path, id_column)
    if column.null_count:
        raise UserError(f"{path}: {column.null_count} of {len(column)} rows have no '{id_column}'; every row needs one")
    first = 1 if is_parquet(path) else 2  # a header stands above
    return Ids(_texts(column, path, id_column), list(range(first, first + len(column))))


def listed(ids: Sequence[Any]) -> list[str]:
    """The ids that Python gave, such as a list or a column of a data frame, as texts."""
    if isinstance(ids, str | bytes | pd.DataFrame):
        raise UserError(f"ids: one {type(ids).__name__}; a list of ids, or one column of a table, is right")
    column = from_objects(list(ids), "ids", "ids")
    if column.null_count:
        raise UserError(f"ids: {column.null_count} of {len(column)} are missing; each must be there")
    return _texts(column, "ids", "ids") if len(column) else []


def framed(found: Sequence[Prediction], guests: Sequence[str], classes: Sequence[str] | None) -> pd.DataFrame:
    """A row for each prediction: `id`, `class` or `value`, probabilities, what it rests on."""
    columns: dict[str, pd.Series] = {"id": pd.Series([one.id for one in found], dtype="str")}
    if classes is None:
        columns["value"] = pd.Series([one.value for one in found], dtype="float64")
    else:
        columns["class"] = pd.Series([one.label for one in found], dtype="object")
        for name in classes:
            columns[f"p_{name}"] = pd.Series([one.probabilities.get(name) for one in found], dtype="float64")
    columns["confidence"] = pd.Series([one.confidence for one in found], dtype="float64")
    columns["degraded"] = pd.Series([one.degraded for one in found], dtype="bool")
    for guest in guests:
        parts = [one.guests.get(guest, _ABSENT) for one in found]
        columns[guest] = pd.Series([part.state for part in parts], dtype="object")
        columns[f"{guest}_age_s"] = pd.Series([part.age_s for part in parts], dtype="float64")
    return pd.DataFrame(columns)


def check_out(path: Path, ids: Path) -> None:
    """Refuses a file that could not be written, or is the list itself, before anybody is asked."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        raise UserError(f"{path}: predictions are written as .parquet or .csv")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} is not there")
    if path.is_dir():
        raise UserError(f"{path} is a folder; a file to write predictions to is right")
    if path.resolve() == ids.resolve():
        raise UserError(f"{path} is the list of the ids; another file is right")


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """As Parquet or CSV, by the suffix; whole or not at all."""
    with writing(path), replacing(path) as temporary:
        if is_parquet(path):
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, index=False)


_ABSENT = GuestPart("absent")


def _read_text(path: Path) -> Ids:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); a file with one id a line is right") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8; one id a line is right") from None
    found = [(line.strip(), number) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise UserError(f"{path} is empty; one id a line is right")
    return Ids([one for one, _ in found], [number for _, number in found])


def _texts(column: pa.ChunkedArray, path: Path | str, id_column: str) -> list[str]:
    if types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    try:
        if types.is_floating(column.type):  # so pandas keeps whole numbers
            column = pc.cast(column, pa.int64())
        if not (types.is_integer(column.type) or types.is_string(column.type) or types.is_large_string(column.type)):
            raise UserError(
                f"{path}: the ids in '{id_column}' are of the type {column.type}; use text or whole numbers"
            )
    except pa.ArrowInvalid:
        raise UserError(f"{path}: the ids in '{id_column}' have fractions; name the column of the ids") from None
    texts: list[str] = pc.cast(column, pa.large_string()).to_pylist()
    return texts
