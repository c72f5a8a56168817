"""Which columns of a user's table each guest holds, and the data frames that guests read them from."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_array

from dvfl.data.split.splits import check_guests
from dvfl.data.tables.columns import ColumnEncoder
from dvfl.errors import UserError

Guests = int | Sequence[Sequence[int | str]] | None


def is_list_of_tables(x: Any) -> bool:
    """Whether `x` is a list of tables, one a guest, and not one table written as a list of rows."""
    return isinstance(x, list | tuple) and len(x) > 0 and _dimensions(x[0]) == 2


def holdings(guests: Guests, names: Sequence[str], *, named: bool) -> list[list[int]]:
    """Positions of the columns that each guest holds; `named` where the table has names of its own."""
    width = len(names)
    if guests is None:
        return [list(range(width))]
    if isinstance(guests, int | np.integer):
        check_guests(int(guests), width, "columns")
        return [part.tolist() for part in np.array_split(np.arange(width), int(guests))]
    if isinstance(guests, str) or not all(isinstance(held, list | tuple | np.ndarray | pd.Index) for held in guests):
        raise ValueError(f"guests={guests!r}: a number of guests, or one list of columns a guest, is right")
    held = [[_position(column, names, named) for column in columns] for columns in guests]
    _check_holdings(held, names)
    return held


def as_frame(table: Any, *, least_rows: int = 1, what: str = "X") -> pd.DataFrame:
    """The table as a data frame; arrays of numbers stay numbers, others are read column by column."""
    if isinstance(table, pd.DataFrame):
        if len(table) < least_rows:
            raise ValueError(f"{what}: found {len(table)} sample(s); at least {least_rows} are needed")
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise ValueError(f"{what}: the column name {twice!r} stands for more than one column")
        return table
    limits = {"ensure_min_samples": least_rows, "input_name": what}
    try:
        x = check_array(table, dtype="numeric", ensure_all_finite="allow-nan", **limits)
    except ValueError:
        if not _holds_text(table):
            raise
        check_array(table, dtype=object, ensure_all_finite=False, **limits)
        return pd.DataFrame(table).infer_objects()
    return pd.DataFrame(x, copy=False)


def as_trained(frames: Sequence[pd.DataFrame], encoders: Sequence[ColumnEncoder]) -> list[pd.DataFrame]:
    """The guests' frames under the names that their columns had in training; what has no names is read by position."""
    if len(frames) != len(encoders):
        raise ValueError(f"{len(frames)} tables for {len(encoders)} guests; one a guest is right")
    renamed = []
    for number, (frame, encoder) in enumerate(zip(frames, encoders, strict=True), 1):
        names = [column.name for column in encoder.columns]
        if frame.shape[1] != len(names):
            raise ValueError(f"table {number} has {frame.shape[1]} columns; {len(names)} are right, as in training")
        named = all(isinstance(name, str) for name in frame.columns) and names != [str(i) for i in range(len(names))]
        renamed.append(frame if named else frame.set_axis(names, axis=1))
    return renamed


def fit_columns(frames: Sequence[pd.DataFrame]) -> list[ColumnEncoder]:
    """Each guest's own way from its columns to numbers, learned from its training rows."""
    encoders = []
    for number, frame in enumerate(frames):
        with _naming(number):
            encoders.append(ColumnEncoder.fit(frame))
    return encoders


def numbers(encoders: Sequence[ColumnEncoder], frames: Sequence[pd.DataFrame]) -> list[NDArray[np.float32]]:
    """What each guest's network sees of its frame."""
    arrays = []
    for number, (encoder, frame) in enumerate(zip(encoders, frames, strict=True)):
        with _naming(number):
            arrays.append(encoder.transform(frame))
    return arrays


def _dimensions(part: Any) -> int:
    if isinstance(part, list | tuple):
        return 1 + (_dimensions(part[0]) if part else 0)
    return len(getattr(part, "shape", ()))


def _position(column: Any, names: Sequence[str], named: bool) -> int:
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if not 0 <= column < len(names):
            raise ValueError(f"guests: there is no column {column}; X has columns 0 to {len(names) - 1}")
        return int(column)
    if not named:
        raise ValueError(f"guests: the column {column!r} is a name, and X has none; positions from 0 are right")
    if column not in names:
        raise ValueError(f"guests: there is no column {column!r}; X has {_few(names)}")
    return names.index(column)


def _check_holdings(held: list[list[int]], names: Sequence[str]) -> None:
    """Every column belongs to one guest, and every guest has one."""
    if not held or not all(held):
        raise ValueError("guests: every guest needs a column at least")
    counts = Counter(column for columns in held for column in columns)
    if twice := [names[column] for column in sorted(counts) if counts[column] > 1]:
        raise ValueError(f"guests: more than one guest holds {_few(twice)}; each column belongs to one")
    if nobody := [name for column, name in enumerate(names) if column not in counts]:
        raise ValueError(f"guests: nobody holds {_few(nobody)}; give the columns to a guest or leave them out of X")


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _holds_text(table: Any) -> bool:
    values = np.asarray(table)
    return values.dtype.kind == "U" or (values.dtype == object and any(isinstance(v, str) for v in values.flat))


@contextmanager
def _naming(number: int) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise ValueError(f"guest {number + 1}: {error}") from error
