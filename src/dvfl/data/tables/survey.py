"""Learns how to encode a table from its blocks, one after the other, as `ColumnEncoder.fit` does from the whole."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.data.split.moments import Moments
from dvfl.data.tables.columns import Column, ColumnEncoder, category_column, infinite, matrix, number_column
from dvfl.data.tables.kinds import Kind, texts
from dvfl.errors import UserError

MOST_LEVELS = 2_000_000  # different texts in all columns of a table; every one is counted, in memory


class Survey:
    """What has been seen of each column so far."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = dict(kinds)
        self.rows = 0
        self.numeric = [name for name, kind in kinds.items() if kind != "category"]
        self.moments = Moments.of(np.empty((0, len(self.numeric))))
        self._levels: dict[str, dict[str, int]] = {name: {} for name, kind in kinds.items() if kind == "category"}
        self._infinite: dict[str, tuple[int, int]] = {}  # how many, and the first one's row

    def add(self, frame: pd.DataFrame) -> None:
        """Takes the next rows of the table."""
        x = matrix(frame[self.numeric], [(name, self.kinds[name]) for name in self.numeric])
        self._note_infinite(x)
        if not self._infinite:
            self.moments = self.moments.merged(Moments.of(x))
        for name, counts in self._levels.items():
            self._count(counts, frame[name], name)
        self.rows += len(frame)

    def encoder(self) -> ColumnEncoder:
        """How to encode each column; raises for infinite values, and where no column tells rows apart."""
        self.refuse_infinite()
        mean, std = self.moments.scales()
        place = {name: j for j, name in enumerate(self.numeric)}
        columns: list[Column] = []
        for name, kind in self.kinds.items():
            if kind == "category":
                columns.append(category_column(name, self._levels[name], self.rows))
                continue
            j = place[name]
            missing = self.rows - int(self.moments.count[j])
            columns.append(number_column(name, kind, missing, self.rows, mean=float(mean[j]), std=float(std[j])))
        return ColumnEncoder.of(columns)

    def refuse_infinite(self) -> None:
        """Raises for infinite values, which the user must mend whatever becomes of the columns."""
        for name in self.numeric:
            if name in self._infinite:
                raise infinite(name, *self._infinite[name])

    def _note_infinite(self, x: NDArray[np.float64]) -> None:
        endless = np.isinf(x)
        for j in np.flatnonzero(endless.any(axis=0)):
            rows = np.flatnonzero(endless[:, j])
            before, first = self._infinite.get(self.numeric[j], (0, self.rows + int(rows[0])))
            self._infinite[self.numeric[j]] = (before + len(rows), first)

    def _count(self, counts: dict[str, int], series: pd.Series, name: str) -> None:
        codes, levels = texts(series, name)
        found = np.bincount(codes[codes >= 0], minlength=len(levels)).tolist()
        for level, count in zip(levels, found, strict=True):
            counts[level] = counts.get(level, 0) + count
        if sum(len(other) for other in self._levels.values()) > MOST_LEVELS:
            widest = max(self._levels, key=lambda name: len(self._levels[name]))
            raise UserError(
                f"the column '{widest}' holds {len(self._levels[widest])} different texts and more;"
                " take out what names single rows, such as addresses or free text"
            )
