"""Which rows of a list of tables belong together, and which labels to them: by position, or by pandas' index."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from dvfl.data.split.vertical import ABSENT
from dvfl.data.tables.overlap import Overlap, arranged, overlap, places, union


@dataclass(frozen=True)
class JoinedRows:
    """The tables of a training, put in order, and their labels."""

    frames: list[pd.DataFrame]
    y: Any  # of the labelled rows
    labelled: NDArray[np.int64] | None  # in which row of each frame they are: (tables, labels); None: label i in row i
    overlap: Overlap


def row_names(tables: Sequence[Any], frames: Sequence[pd.DataFrame]) -> list[pd.Index] | None:
    """The index of each table where rows are matched by it; None where row i of one is row i of all.

    `frames` are the tables as data frames; those that were none had no index.
    """
    named = [isinstance(table, pd.DataFrame) for table in tables]
    ids = [frame.index for frame in frames]
    first = next((own for own, has in zip(ids, named, strict=True) if has), ids[0])
    alike = all(own.equals(first) for own, has in zip(ids, named, strict=True) if has)
    if alike and len({len(own) for own in ids}) == 1:
        return None
    if not all(named):
        check_consistent_length(*frames)
        number = named.index(False) + 1
        raise ValueError(
            f"table {number} has no index, and those of the others differ; data frames alone can be matched"
        )
    if all(_by_default(own) for own in ids if len(own)):
        lengths = ", ".join(str(len(own)) for own in ids)
        raise ValueError(
            f"tables of {lengths} rows that are numbered from 0 by default do not say which rows are the same;"
            " an index that does (set_index) is right"
        )
    for number, own in enumerate(ids, 1):
        _check_index(own, f"table {number}")
    return ids


def join(tables: Sequence[Any], frames: Sequence[pd.DataFrame], y: Any) -> JoinedRows:
    """The tables and labels of a training, matched."""
    ids, y = row_names(tables, frames), _with_index(y)
    if ids is None and _by_position(y, frames[0], any(isinstance(table, pd.DataFrame) for table in tables)):
        return by_position(frames, y)
    ids = [frame.index for frame in frames] if ids is None else ids
    if not isinstance(y, pd.Series):
        raise ValueError("y has no index, and those of the tables differ; a Series whose index names its rows is right")
    for number, own in enumerate(ids, 1):
        _check_index(own, f"table {number}")
    _check_index(y.index, "y")
    for number, own in enumerate(ids, 1):
        if not y.index.isin(own).any():
            raise ValueError(f"table {number} has no row that y has a label for; do their indices name the same rows?")
    known = overlap(ids, y.index)
    y = y[y.index.isin(union(ids))]
    orders, labelled = arranged(ids, y.index)
    ordered = [frame.iloc[order] for frame, order in zip(frames, orders, strict=True)]
    return JoinedRows(ordered, y, labelled, known)


def by_position(frames: Sequence[pd.DataFrame], y: Any) -> JoinedRows:
    """Label i is that of row i of every table."""
    check_consistent_length(frames[0], y)
    rows = len(frames[0])
    return JoinedRows(list(frames), y, None, Overlap((rows,) * len(frames), rows, rows, rows, rows))


def spread(
    ids: Sequence[pd.Index], tables: Sequence[NDArray[np.float32]]
) -> tuple[list[NDArray[np.float32]], NDArray[np.bool_]]:
    """Tables with a row for everything that some of them have, zeros where one has none; and who has which.

    Rows are in the order of first appearance, one table after the other: (rows, columns) each, and (rows, tables).
    """
    where = places(ids, union(ids))
    whole = []
    for rows, table in zip(where, tables, strict=True):
        made = np.zeros((len(rows), table.shape[1]), np.float32)
        made[rows != ABSENT] = table[rows[rows != ABSENT]]
        whole.append(made)
    return whole, where.T != ABSENT


def in_order(rows: pd.Index, y: Any, *, named: bool, what: str) -> Any:
    """Values of rows, in the rows' order; `named`: the rows have an index by which a Series is matched."""
    y = _with_index(y)
    if not isinstance(y, pd.Series) or not named or _same(y, rows):
        return y
    _check_index(y.index, what)
    found = int(rows.isin(y.index).sum())
    if found < len(rows) or found < len(y):
        raise ValueError(f"{what} has {found} of the {len(rows)} rows, and {len(y) - found} others; each once is right")
    return y.loc[rows]


def _with_index(y: Any) -> Any:
    return y.iloc[:, 0] if isinstance(y, pd.DataFrame) and y.shape[1] == 1 else y


def _by_position(y: Any, frame: pd.DataFrame, named: bool) -> bool:
    """Whether label i belongs to row i of tables whose rows are the same by position."""
    if not isinstance(y, pd.Series) or not named or _same(y, frame.index):
        return True
    if _by_default(frame.index) and len(y) == len(frame) and not y.index.isin(frame.index).all():
        raise ValueError(
            "y has another index than the tables, which are numbered from 0 by default; the same index for all, or y as"
            " an array in the rows' order, is right"
        )
    return False


def _same(y: pd.Series, rows: pd.Index) -> bool:
    """Whether a Series has these rows one by one: by its index, or because it is only numbered."""
    return y.index.equals(rows) or (_by_default(y.index) and len(y) == len(rows))


def _by_default(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _check_index(index: pd.Index, what: str) -> None:
    repeated = int(index.duplicated().sum())
    if repeated:
        raise ValueError(f"{what}: {repeated} of {len(index)} rows repeat an earlier index value; each may occur once")
    if index.hasnans:
        raise ValueError(f"{what}: the index has missing values; every row needs one of its own")
