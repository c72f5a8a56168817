"""A federation's data from the users' own files: one table a guest, labels apart, joined on an id column."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.data.split.splits import Rows, hold_out
from dvfl.data.split.vertical import ABSENT, GuestTable, Split, VerticalData
from dvfl.data.tables.columns import ColumnEncoder, refuse_infinite
from dvfl.data.tables.overlap import Overlap, arranged, overlap, places
from dvfl.data.tables.reading import Table, describe_ids, join_ids, read_table
from dvfl.data.tables.targets import Task, label_of, targets
from dvfl.errors import UserError


@dataclass(frozen=True)
class LoadedTables:
    """The joined data, and what is needed to encode further rows of the same tables."""

    data: VerticalData
    encoders: tuple[ColumnEncoder, ...]  # one a guest
    ids_train: NDArray[Any]  # whose labels these are, in the order of `data`
    ids_test: NDArray[Any]
    overlap: Overlap


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
    """Reads each guest's table and the labels, and holds out test rows among those with a label.

    Guests train on all their other rows, labelled or not. A label counts where one guest at least has a row for it.
    """
    if not tables:
        raise UserError("no table is given: a federation needs one for each guest, and the labels")
    if not 0 < test_fraction < 1:
        raise UserError(f"test_fraction is {test_fraction}; it must lie between 0 and 1")
    if labels.resolve() in [path.resolve() for path in tables]:
        raise UserError(f"{labels} is given as labels and as a guest's table; the guest would train on the labels")
    guests = [_guest_table(path, id_column, missing) for path in tables]
    owner = read_table(labels, id_column)
    target = label_of(owner, label_column)
    ids = join_ids([*guests, owner])
    labelled = _labelled([*guests, owner], ids)
    y, classes = targets(target.iloc[ids[-1].get_indexer(labelled)], task, labels)
    train, test = hold_out(len(labelled), None if classes is None else y.astype(np.int64), test_fraction)
    known = overlap(ids[:-1], ids[-1])
    own = [np.flatnonzero(~index.isin(labelled[test])) for index in ids[:-1]]  # what each guest may train on
    orders, where = arranged([index[rows] for index, rows in zip(ids[:-1], own, strict=True)], labelled[train])
    tested = places(ids[:-1], labelled[test])
    encoded = [
        _encode(name, guest, rows[order], test_rows)
        for name, guest, rows, order, test_rows in zip(_guest_names(tables), guests, own, orders, tested, strict=True)
    ]
    data = VerticalData(
        labels.name.split(".")[0],
        tuple(guest for guest, _ in encoded),
        y[train],
        y[test],
        classes,
        note=known.describe([table.path.name for table in guests], owner.path.name),
        split=Split("random"),
        labelled=where,
        tested=None if (tested != ABSENT).all() else tested != ABSENT,
    )
    names = labelled.to_numpy()
    return LoadedTables(data, tuple(encoder for _, encoder in encoded), names[train], names[test], known)


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


def _labelled(tables: Sequence[Table], ids: Sequence[pd.Index]) -> pd.Index:
    """The labels' ids that some guest has, sorted; the owner's table is the last."""
    owner = ids[-1]
    # Sorted, so that the split depends on who is in the tables and not on the order of their rows.
    labelled = owner[np.any([owner.isin(own) for own in ids[:-1]], axis=0)].sort_values()
    strangers = [number for number, own in enumerate(ids[:-1]) if not owner.isin(own).any()]
    if not strangers and len(labelled) > 1:
        return labelled
    sizes = ", ".join(f"{table.path} {len(table)}" for table in tables)
    kinds = [describe_ids(index) for index in ids]
    hint = ""
    if len(set(kinds)) > 1:
        told = ", ".join(f"{kind} in {table.path.name}" for table, kind in zip(tables, kinds, strict=True))
        hint = f"; the ids differ in type ({told}): write them alike"
    found = f"no label is of an id in {tables[strangers[0]].path}" if strangers else "only one id has a label"
    raise UserError(f"{found} (rows: {sizes}){hint}")


def _guest_names(tables: Sequence[Path]) -> list[str]:
    stems = [path.name.split(".")[0] for path in tables]
    # guest-1/table.parquet and guest-2/table.parquet are told apart by their place.
    return stems if len(set(stems)) == len(stems) else [f"guest-{i}" for i in range(1, len(stems) + 1)]


def _encode(name: str, table: Table, train: Rows, test: NDArray[np.int64]) -> tuple[GuestTable, ColumnEncoder]:
    """The guest's training rows as numbers, and its test rows, zeros where it has none."""
    try:
        encoder = ColumnEncoder.fit(table.columns.iloc[train])
        tested = np.zeros((len(test), encoder.width), np.float32)
        tested[test != ABSENT] = encoder.transform(table.columns.iloc[test[test != ABSENT]])
        return GuestTable(name, encoder.transform(table.columns.iloc[train]), tested), encoder
    except UserError as error:
        raise UserError(f"{table.path}: {error}") from error
