"""The labels of a table: which column they are in, and whether they are classes or numbers."""

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.data.tables.kinds import as_text, is_nested, kind_of, numbers
from dvfl.data.tables.reading import SHOWN, Table
from dvfl.errors import UserError, nearest

Task = Literal["auto", "classify", "regress"]

CONTINUOUS = 20  # a floating label with more distinct values than this is a quantity, not a class


def label_of(owner: Table, label_column: str | None) -> pd.Series:
    """The column of labels, every row with one; its name may be left out where there is no other column."""
    names = [str(name) for name in owner.columns.columns]
    if not names:
        raise UserError(f"{owner.path} has no column besides the id; it needs the label")
    if label_column is None and len(names) > 1:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise UserError(f"{owner.path} has several columns ({', '.join(names[:SHOWN])}{more}); say which is the label")
    if label_column is not None and label_column not in names:
        raise UserError(f"{owner.path} has no column '{label_column}'{nearest(label_column, names)}")
    target = owner.columns.iloc[:, names.index(label_column) if label_column else 0]
    if is_nested(target):
        raise UserError(f"{owner.path}: the labels in '{target.name}' are lists or structures; use numbers or text")
    absent = int(target.isna().sum())
    if absent:
        raise UserError(
            f"{owner.path}: {absent} of {len(owner)} labels are missing in the column '{target.name}';"
            " leave those rows out"
        )
    return target


def targets(
    target: pd.Series, task: Task, path: Path
) -> tuple[NDArray[np.int64] | NDArray[np.float32], tuple[str, ...] | None]:
    """Class indices and the classes' names, or numbers and None."""
    name = str(target.name)
    kind = kind_of(target, name)
    distinct = target.nunique()
    if distinct < 2:
        raise UserError(
            f"{path}: all {len(target)} joined rows have the same label '{name}'; learning needs two or more"
        )
    floating = kind == "number" and not pd.api.types.is_integer_dtype(target.dtype)
    if task == "regress" or (task == "auto" and floating and distinct > CONTINUOUS):
        return _quantities(target, path), None
    if task == "auto" and distinct > max(CONTINUOUS, len(target) // 2):
        raise UserError(
            f"{path}: the label '{name}' has {distinct} different values in {len(target)} rows, too many for classes;"
            " say that the task is regression, or classification if these are classes"
        )
    codes, values = pd.factorize(target, sort=True)
    return codes.astype(np.int64), tuple(as_text(value) for value in values)


def targets_like(
    target: pd.Series, classes: tuple[str, ...] | None, path: Path
) -> NDArray[np.int64] | NDArray[np.float32]:
    """The labels of further rows: indices into the `classes` known from training, or numbers where there are none."""
    if classes is None:
        return _quantities(target, path)
    texts = target.map(as_text)
    y = np.asarray(pd.Index(classes).get_indexer(texts), np.int64)
    if (y < 0).any():
        raise UserError(
            f"{path}: {int((y < 0).sum())} of {len(y)} labels in the column '{target.name}' are classes that no"
            f" training row has, such as '{texts[y < 0].iloc[0]}'; leave those rows out"
        )
    return y


def _quantities(target: pd.Series, path: Path) -> NDArray[np.float32]:
    name = str(target.name)
    kind = kind_of(target, name)
    if kind != "number":
        raise UserError(f"{path}: the label '{name}' is not a number, so it cannot be a regression's target")
    with np.errstate(over="ignore"):
        y = numbers(target, name, kind).astype(np.float32)
    if np.isinf(y).any():
        raise UserError(f"{path}: the label '{name}' is infinite, or beyond 1e38, in {int(np.isinf(y).sum())} rows")
    return y
