"""What a guest does to its own table before its encoder sees it: every column becomes numbers of about unit size."""

import dataclasses
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dvfl.data.split.splits import moments, standardise
from dvfl.data.tables.kinds import Kind, kind_of, numbers, texts
from dvfl.errors import UserError

LEVELS = 64  # one-hot columns for one column of text; rarer levels share one more
OTHER = "(other)"
# Training rows lie within the square root of their number; what lies a million deviations out is
# no longer a measurement, and its square would overflow float32 in the loss.
FARTHEST = 1e6


@dataclass(frozen=True)
class Column:
    """How one column is encoded; a column without `outputs` tells nothing and is dropped."""

    name: str
    kind: Kind
    missing: int  # training rows without a value
    indicator: bool  # an output that says whether the value is missing
    mean: float = 0.0
    std: float = 0.0  # 0: constant, or not a number
    levels: tuple[str, ...] = ()
    other: bool = False  # an output for the levels that have none

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        names = [self.name] if self.std > 0 else []
        names += [f"{self.name} = {level}" for level in self.levels]
        names += [f"{self.name} = {OTHER}"] if self.other else []
        names += [f"{self.name} is missing"] if self.indicator else []
        return tuple(names)


@dataclass(frozen=True)
class ColumnEncoder:
    """A table's columns as standardised numbers; fitted on training rows, then the same for all rows."""

    columns: tuple[Column, ...]
    names: tuple[str, ...] = field(init=False)  # of the outputs, in order
    dropped: tuple[str, ...] = field(init=False)  # columns that are constant or always missing

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(name for column in self.columns for name in column.outputs))
        object.__setattr__(self, "dropped", tuple(column.name for column in self.columns if not column.outputs))

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def missing(self) -> dict[str, int]:
        """The columns in which training rows lacked values, and how many."""
        return {column.name: column.missing for column in self.columns if column.missing}

    @classmethod
    def fit(cls, frame: pd.DataFrame) -> "ColumnEncoder":
        """Learns from the training rows how to encode each column."""
        if len(frame) == 0:
            raise UserError("the table has no rows to learn its columns from")
        names = _names(frame)
        kinds = [kind_of(frame.iloc[:, i], name) for i, name in enumerate(names)]
        numeric = [i for i, kind in enumerate(kinds) if kind != "category"]
        x = _matrix(frame, numeric, [(names[i], kinds[i]) for i in numeric])
        mean, std = moments(x)
        absent = np.isnan(x).sum(axis=0)
        slot = {i: j for j, i in enumerate(numeric)}
        columns: list[Column] = []
        for i, name in enumerate(names):
            if kinds[i] == "category":
                codes, levels = texts(frame.iloc[:, i], name)
                counts = np.bincount(codes[codes >= 0], minlength=len(levels))
                columns.append(category_column(name, dict(zip(levels, counts.tolist(), strict=True)), len(frame)))
                continue
            j = slot[i]
            columns.append(
                number_column(name, kinds[i], int(absent[j]), len(frame), mean=float(mean[j]), std=float(std[j]))
            )
        return cls.of(columns)

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "ColumnEncoder":
        """The encoder of these columns; raises where none of them is of use."""
        encoder = cls(tuple(columns))
        if encoder.width == 0:
            raise UserError(
                "no column tells rows apart: "
                + ("every one is constant or missing in the training rows" if columns else "the table has no columns")
            )
        return encoder

    def transform(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """The rows as numbers (rows, width), all finite; columns the encoder does not know are ignored."""
        position = {name: i for i, name in enumerate(_names(frame))}
        used = [column for column in self.columns if column.outputs]
        absent = [column.name for column in used if column.name not in position]
        if absent:
            more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
            raise UserError(f"the table lacks the column '{absent[0]}'{more}, which it had in training")
        numeric = [column for column in used if column.kind != "category"]
        x = _matrix(frame, [position[c.name] for c in numeric], [(c.name, c.kind) for c in numeric])
        z = standardise(x, np.array([c.mean for c in numeric]), np.array([c.std for c in numeric]))
        z = np.clip(z, -FARTHEST, FARTHEST)
        if len(numeric) == self.width and not any(column.indicator for column in used):
            return np.nan_to_num(z, copy=False).astype(np.float32, order="C")
        out = np.zeros((len(frame), self.width), np.float32)
        start, j = 0, 0
        for column in used:
            block = out[:, start : start + len(column.outputs)]
            start += len(column.outputs)
            if column.kind == "category":
                _write_category(block, column, frame.iloc[:, position[column.name]])
                continue
            missing = np.isnan(x[:, j])
            if column.std > 0:
                block[:, 0] = np.where(missing, 0.0, z[:, j])
            if column.indicator:
                block[:, -1] = missing
            j += 1
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {"columns": [{**dataclasses.asdict(c), "levels": list(c.levels)} for c in self.columns]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "ColumnEncoder":
        """The encoder that `to_dict` described."""
        try:
            return cls(tuple(Column(**{**c, "levels": tuple(c["levels"])}) for c in plain["columns"]))
        except (KeyError, TypeError) as error:
            raise UserError(f"not a saved column encoder ({error})") from error


def number_column(name: str, kind: Kind, missing: int, rows: int, *, mean: float, std: float) -> Column:
    """How numbers, booleans or times are encoded, of which training rows had this mean and deviation."""
    # A boolean stays 0 and 1.
    centre, scale = (0.0, float(std > 0)) if kind == "boolean" else (mean, std)
    return Column(name, kind, missing, 0 < missing < rows, centre, scale)


def category_column(name: str, counts: Mapping[str, int], rows: int) -> Column:
    """How text is encoded, of which training rows had each level so many times."""
    missing = rows - sum(counts.values())
    indicator = 0 < missing < rows
    if len(counts) <= 1:
        return Column(name, "category", missing, indicator)
    # Most frequent first, ties by name, so that the order of the rows does not matter.
    ranked = heapq.nsmallest(LEVELS, counts, key=lambda level: (-counts[level], level))
    return Column(name, "category", missing, indicator, levels=tuple(sorted(ranked)), other=len(counts) > LEVELS)


def refuse_infinite(frame: pd.DataFrame) -> None:
    """Raises for infinite values, while the rows are still numbered as the user knows them."""
    names = _names(frame)
    numeric = [i for i in range(len(names)) if kind_of(frame.iloc[:, i], names[i]) == "number"]
    _matrix(frame, numeric, [(names[i], "number") for i in numeric])


def infinite(name: str, count: int, row: int) -> UserError:
    """What is said of a column with infinite values, the first of them in `row`, counted from 0."""
    return UserError(
        f"the column '{name}' holds infinite values: {count}, the first in row {row + 1} (counted from 1);"
        " put numbers or leave them empty"
    )


def matrix(frame: pd.DataFrame, columns: Sequence[tuple[str, Kind]]) -> NDArray[np.float64]:
    """The frame's columns, which have these names and kinds, as numbers (rows, columns); NaN where one is missing."""
    plain = all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in frame.dtypes)
    if plain and all(kind == "number" for _, kind in columns):
        whole: NDArray[np.float64] = frame.to_numpy(np.float64)  # one copy for a whole table of numbers
        return whole
    x = np.empty(frame.shape, np.float64)
    for j, (name, kind) in enumerate(columns):
        x[:, j] = numbers(frame.iloc[:, j], name, kind)
    return x


def _names(frame: pd.DataFrame) -> list[str]:
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"the column name '{twice}' stands for more than one column")
    return names


def _matrix(frame: pd.DataFrame, positions: list[int], columns: Sequence[tuple[str, Kind]]) -> NDArray[np.float64]:
    """The columns at `positions` as finite numbers (rows, columns); NaN where a value is missing."""
    x = matrix(frame if positions == list(range(frame.shape[1])) else frame.iloc[:, positions], columns)
    endless = np.isinf(x)
    if endless.any():
        j = int(endless.any(axis=0).argmax())
        rows = np.flatnonzero(endless[:, j])
        raise infinite(columns[j][0], len(rows), int(rows[0]))
    return x


def _write_category(block: NDArray[np.float32], column: Column, series: pd.Series) -> None:
    codes, levels = texts(series, column.name)
    place = {level: i for i, level in enumerate(column.levels)}
    unseen = len(column.levels) if column.other else -1
    # One entry more, at index -1, for missing values.
    target = np.array([place.get(level, unseen) for level in levels] + [-1])[codes]
    rows = np.flatnonzero(target >= 0)
    block[rows, target[rows]] = 1.0
    if column.indicator:
        block[:, -1] = codes < 0
