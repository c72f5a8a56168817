"""A federation's data from the users' own files: one table a guest, labels apart, joined on an id column."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.data.columns import ColumnEncoder, refuse_infinite
from dvfl.data.reading import Table, describe_ids, join_ids, read_table
from dvfl.data.splits import Rows, hold_out
from dvfl.data.targets import Task, label_of, targets
from dvfl.data.vertical import GuestTable, Split, VerticalData
from dvfl.errors import UserError


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
    target = label_of(owner, label_column)
    common, places = _join([*guests, owner])
    y, classes = targets(target.iloc[places[-1]], task, labels)
    train, test = hold_out(len(common), None if classes is None else y.astype(np.int64), test_fraction)
    names = _guest_names(tables)
    encoded = [
        _encode(name, guest, place, train, test) for name, guest, place in zip(names, guests, places[:-1], strict=True)
    ]
    counts = ", ".join(f"{table.path.name} {len(table)}" for table in [*guests, owner])
    note = f"rows: {counts}; in all of them: {len(common)}"
    data = VerticalData(
        labels.name.split(".")[0],
        tuple(guest for guest, _ in encoded),
        y[train],
        y[test],
        classes,
        note=note,
        split=Split("random"),
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
