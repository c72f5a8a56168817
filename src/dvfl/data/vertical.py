"""Vertically split data: one table a guest, rows aligned, labels apart."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.parties.randomness import numpy_generator

SplitRule = Literal["official", "subject", "random"]


@dataclass(frozen=True)
class Split:
    """How test rows were chosen."""

    rule: SplitRule
    seed: int = 0  # of the draw; an official split has none

    def __str__(self) -> str:
        """For a reader of results."""
        if self.rule == "official":
            return "official"
        return f"{'by subject' if self.rule == 'subject' else 'random'}, split seed {self.seed}"


@dataclass(frozen=True)
class Wanted:
    """What the loader of a data set is asked for."""

    data_dir: Path | None
    guests: int | None  # None: the data set's own number
    split: Split

    def guests_or(self, usual: int) -> int:
        return usual if self.guests is None else self.guests


@dataclass(frozen=True)
class GuestTable:
    """One guest's columns as numbers, ready for its encoder."""

    name: str
    train: NDArray[np.float32]  # (rows, columns)
    test: NDArray[np.float32]  # (test rows, columns)
    unit: bool = False  # every value lies in [0, 1], so the decoder ends in a sigmoid
    image: tuple[int, int] | None = None  # height and width, where a row is a strip of an image

    @property
    def columns(self) -> int:
        return int(self.train.shape[1])


@dataclass(frozen=True)
class VerticalData:
    """What a simulated federation trains and is tested on."""

    name: str
    guests: tuple[GuestTable, ...]
    y_train: NDArray[np.int64] | NDArray[np.float32]  # class indices, or targets of a regression
    y_test: NDArray[np.int64] | NDArray[np.float32]
    classes: tuple[str, ...] | None  # None for regression
    sizes: str = "table"  # the paper's sizing rule for this data set (dvfl.parties.sizes)
    note: str = ""  # what a reader of results must know of this data set
    split: Split | None = None  # None where there are no test rows, or somebody else chose them

    @property
    def rows(self) -> int:
        return len(self.y_train)


def fewer_rows(data: VerticalData, rows: int | None) -> VerticalData:
    """The data with so many training rows, drawn once for all seeds; test rows are all kept."""
    if rows is None:
        return data
    if not 64 <= rows <= data.rows:
        raise UserError(f"--rows {rows}: from 64 to {data.rows}, the training rows of {data.name}, is right")
    chosen = np.sort(numpy_generator(0, "fewer rows", data.name).permutation(data.rows)[:rows])
    guests = tuple(replace(guest, train=guest.train[chosen]) for guest in data.guests)
    return replace(data, guests=guests, y_train=data.y_train[chosen])
