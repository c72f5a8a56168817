"""Which rows of which tables are the same entity, by their ids: what is common, what is labelled, what is nowhere."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.data.split.vertical import ABSENT

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Overlap:
    """How far the rows of tables and labels are those of the same entities."""

    rows: tuple[int, ...]  # of each table
    common: int  # entities that every table has
    labels: int
    labelled: int  # labels whose entity some table has
    labelled_common: int  # labels whose entity every table has

    @property
    def unused(self) -> int:
        """Labels whose entity no table has."""
        return self.labels - self.labelled

    @property
    def whole(self) -> bool:
        """Whether every table has a row for every label, and no other rows."""
        return self.labelled_common == self.labels and set(self.rows) == {self.labels}

    def describe(self, names: Sequence[str], labels: str = "labels") -> str:
        """One line; what each table and the labels are called is the caller's."""
        counts = ", ".join(f"{name} {count}" for name, count in zip(names, self.rows, strict=True))
        nowhere = f"; labels without a row: {self.unused}" if self.unused else ""
        return (
            f"rows: {counts}, {labels} {self.labels}; in every table: {self.common}"
            f"; labelled: {self.labelled}, of which in every table: {self.labelled_common}{nowhere}"
        )


def overlap(ids: Sequence[pd.Index], labels: pd.Index) -> Overlap:
    """Counts what tables with these ids, each unique in its table, have in common among them and with the labels."""
    known = [labels.isin(own) for own in ids]
    return Overlap(
        rows=tuple(len(own) for own in ids),
        common=len(in_all(ids)),
        labels=len(labels),
        labelled=int(np.any(known, axis=0).sum()),
        labelled_common=int(np.all(known, axis=0).sum()),
    )


def in_all(ids: Sequence[pd.Index]) -> pd.Index:
    """What every table has, in the first one's order."""
    common = ids[0]
    for other in ids[1:]:
        common = common[common.isin(other)]
    return common


def union(ids: Sequence[pd.Index]) -> pd.Index:
    """What some table has, in the order of first appearance, one table after the other."""
    every = ids[0]
    for other in ids[1:]:
        every = every.append(other[~other.isin(every)])
    return every


def places(ids: Sequence[pd.Index], wanted: pd.Index) -> NDArray[np.int64]:
    """In which row of each table each of the wanted is, ABSENT where in none: (tables, wanted)."""
    found = np.stack([own.get_indexer(wanted) for own in ids]).astype(np.int64)
    found[found < 0] = ABSENT
    return found


def arranged(ids: Sequence[pd.Index], labelled: pd.Index) -> tuple[list[Rows], NDArray[np.int64] | None]:
    """An order for each table's rows, and where the labelled are after it: (tables, labels), or None.

    What every table has comes first, in one order for all, so that hosts see it together; labelled ones lead. None says
    that label i belongs to row i of every table.
    """
    first = in_all(ids)
    first = union([labelled[labelled.isin(first)], first])
    orders = []
    for own in ids:
        shared = own.get_indexer(first)
        rest = np.setdiff1d(np.arange(len(own)), shared)
        orders.append(np.concatenate([shared, rest]).astype(np.intp))
    where = places([own[order] for own, order in zip(ids, orders, strict=True)], labelled)
    aligned = all(len(own) == len(labelled) for own in ids) and bool((where == np.arange(len(labelled))).all())
    return orders, None if aligned else where
