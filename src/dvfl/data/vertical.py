"""Vertically split data: one table a guest, rows aligned, labels apart."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.parties.randomness import numpy_generator


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
