"""A federation's data from the users' own files: one table a guest, labels apart, joined on an id column."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.data.columns import ColumnEncoder, refuse_infinite
from dvfl.data.kinds import as_text, is_nested, kind_of, numbers
from dvfl.data.reading import SHOWN, Table, describe_ids, join_ids, read_table
from dvfl.data.splits import Rows, hold_out
from dvfl.data.vertical import GuestTable, VerticalData
from dvfl.errors import UserError, nearest

Task = Literal["auto", "classify", "regress"]

CONTINUOUS = 20  # a floating label with more distinct values than this is a quantity, not a class


@dataclass(frozen=True)
class LoadedTables:
    """The joined data, and what is needed to encode further rows of the same tables."""

    data: VerticalData
    encoders: tuple[ColumnEncoder, ...]  # one a guest
    ids_train: NDArray[Any]  # whose rows these are, in the order of `data`
    ids_test: NDArray[Any]


def load_tables(
    tables: Sequence[Path],
    labels: Path,
    id_column: str,
    *,
    missing: Literal["impute", "forbid"] = "impute",
    label_column: str | None = None,
    task: Task = "auto",
    test_fraction: float = 0.2,
) -> LoadedTables:
    """Reads each guest's table and the labels, keeps the rows whose ids are in all, and holds out test rows."""
    if not tables:
        raise UserError("no table is given: a federation needs one for each guest, and the labels")
    if not 0 < test_fraction < 1:
        raise UserError(f"test_fraction is {test_fraction}; it must lie between 0 and 1")
    if labels.resolve() in [path.resolve() for path in tables]:
        raise UserError(f"{labels} is given as labels and as a guest's table; the guest would train on the labels")
    guests = [_guest_table(path, id_column, missing) for path in tables]
    owner = read_table(labels, id_column)
    target = _label(owner, label_column)
    common, places = _join([*guests, owner])
    y, classes = _targets(target.iloc[places[-1]], task, labels)
    train, test = hold_out(len(common), None if classes is None else y.astype(np.int64), test_fraction)
    names = _guest_names(tables)
    encoded = [
        _encode(name, guest, place, train, test) for name, guest, place in zip(names, guests, places[:-1], strict=True)
    ]
    counts = ", ".join(f"{table.path.name} {len(table)}" for table in [*guests, owner])
    note = f"rows: {counts}; in all of them: {len(common)}"
    data = VerticalData(
        labels.name.split(".")[0], tuple(guest for guest, _ in encoded), y[train], y[test], classes, note=note
    )
    ids = common.to_numpy()
    return LoadedTables(data, tuple(encoder for _, encoder in encoded), ids[train], ids[test])


def _guest_table(path: Path, id_column: str, missing: str) -> Table:
    table = read_table(path, id_column)
    if table.columns.shape[1] == 0:
        raise UserError(f"{path} has no column besides '{id_column}'; a guest needs at least one")
    try:
        refuse_infinite(table.columns)  # before joining, while rows are numbered as in the file
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    if missing == "forbid":
        absent = table.columns.isna().sum()
        holes = absent[absent > 0]
        if len(holes):
            more = f" (and {len(holes) - 1} more columns lack some)" if len(holes) > 1 else ""
            raise UserError(
                f"{path}: {holes.iloc[0]} of {len(table)} values are missing in the column '{holes.index[0]}'{more};"
                " fill them, or allow missing values to be imputed"
            )
    return table


def _label(owner: Table, label_column: str | None) -> pd.Series:
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


def _join(tables: Sequence[Table]) -> tuple[pd.Index, list[Rows]]:
    """The ids that every table has, sorted, and where each table has them."""
    ids = join_ids(tables)
    common = ids[0]
    for other in ids[1:]:
        common = common[common.isin(other)]
    if len(common) < 2:
        sizes = ", ".join(f"{table.path} {len(table)}" for table in tables)
        kinds = [describe_ids(index) for index in ids]
        hint = ""
        if len(set(kinds)) > 1:
            told = ", ".join(f"{kind} in {table.path.name}" for table, kind in zip(tables, kinds, strict=True))
            hint = f"; the ids differ in type ({told}): write them alike"
        found = "no id is" if len(common) == 0 else "only one id is"
        raise UserError(f"{found} in all tables (rows: {sizes}){hint}")
    # Sorted, so that the split depends on who is in the tables and not on the order of their rows.
    common = common.sort_values()
    return common, [index.get_indexer(common) for index in ids]


def _targets(
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
        if kind != "number":
            raise UserError(f"{path}: the label '{name}' is not a number, so it cannot be a regression's target")
        with np.errstate(over="ignore"):
            y = numbers(target, name, kind).astype(np.float32)
        if np.isinf(y).any():
            raise UserError(f"{path}: the label '{name}' is infinite, or beyond 1e38, in {int(np.isinf(y).sum())} rows")
        return y, None
    if task == "auto" and distinct > max(CONTINUOUS, len(target) // 2):
        raise UserError(
            f"{path}: the label '{name}' has {distinct} different values in {len(target)} rows, too many for classes;"
            " say that the task is regression, or classification if these are classes"
        )
    codes, values = pd.factorize(target, sort=True)
    return codes.astype(np.int64), tuple(as_text(value) for value in values)


def _guest_names(tables: Sequence[Path]) -> list[str]:
    stems = [path.name.split(".")[0] for path in tables]
    # guest-1/table.parquet and guest-2/table.parquet are told apart by their place.
    return stems if len(set(stems)) == len(stems) else [f"guest-{i}" for i in range(1, len(stems) + 1)]


def _encode(name: str, table: Table, place: Rows, train: Rows, test: Rows) -> tuple[GuestTable, ColumnEncoder]:
    rows = table.columns.iloc[place]
    try:
        encoder = ColumnEncoder.fit(rows.iloc[train])
        return GuestTable(name, encoder.transform(rows.iloc[train]), encoder.transform(rows.iloc[test])), encoder
    except UserError as error:
        raise UserError(f"{table.path}: {error}") from error
