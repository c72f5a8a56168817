"""Vertically split data: one table a guest, rows aligned, labels apart."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.parties.objectives.warps import Strip

ABSENT = -1  # in place of a row's number: the guest has no such row

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
    image: Strip | None = None  # of which picture's pixels, where a row is a strip of one

    @property
    def columns(self) -> int:
        return int(self.train.shape[1])


@dataclass(frozen=True)
class VerticalData:
    """What a simulated federation trains and is tested on.

    Guests may hold rows that nobody else has, and different numbers of them: `labelled` (guests, labels) then says in
    which row of each guest's table a labelled entity is, ABSENT where it has none; one guest at least has it. Without
    it, label i belongs to row i of every table. `tested` (guests, test rows) says likewise who has which test row; the
    table of a guest that has not holds zeros there.
    """

    name: str
    guests: tuple[GuestTable, ...]
    y_train: NDArray[np.int64] | NDArray[np.float32]  # class indices, or targets of a regression
    y_test: NDArray[np.int64] | NDArray[np.float32]
    classes: tuple[str, ...] | None  # None for regression
    sizes: str = "table"  # the paper's sizing rule for this data set (dvfl.parties.networks.sizes)
    note: str = ""  # what a reader of results must know of this data set
    split: Split | None = None  # None where there are no test rows, or somebody else chose them
    labelled: NDArray[np.int64] | None = None
    tested: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> int:
        """Training rows, labelled or not, of the guest that has most; of the labels' holder where there is no guest."""
        return max((len(guest.train) for guest in self.guests), default=len(self.y_train))

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which labelled entities every guest has: (labels,)."""
        if self.labelled is None:
            return np.ones(len(self.y_train), bool)
        return np.asarray((self.labelled != ABSENT).all(0))

    @property
    def complete_tests(self) -> NDArray[np.bool_]:
        """Which test rows every guest has: (test rows,)."""
        if self.tested is None:
            return np.ones(len(self.y_test), bool)
        return np.asarray(self.tested.all(0))

    @property
    def gaps(self) -> bool:
        """Whether some guest lacks a labelled entity or a test row."""
        return not (self.complete.all() and self.complete_tests.all())

    def train_of(self, guest: int, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """A guest's rows of labelled entities that it has, by their numbers among the labels: (some, columns)."""
        return self.guests[guest].train[labels if self.labelled is None else self.labelled[guest][labels]]


def completed(data: VerticalData) -> VerticalData:
    """The data with those labels alone whose entity every guest has; guests keep all their rows."""
    kept = data.complete
    if data.labelled is None or kept.all():
        return data
    note = f"trained on the {kept.sum():,} of {len(kept):,} labelled rows that every guest has"
    note = f"{data.note}; {note}" if data.note else note
    return replace(data, y_train=data.y_train[kept], labelled=data.labelled[:, kept], note=note)


def intersection(data: VerticalData) -> VerticalData:
    """The labelled rows alone that every guest has, aligned."""
    data = completed(data)
    if data.labelled is None:
        return data
    pairs = zip(data.guests, data.labelled, strict=True)
    return replace(data, guests=tuple(replace(guest, train=guest.train[own]) for guest, own in pairs), labelled=None)


def limited_intersection(data: VerticalData, labelled: int, seed: int) -> VerticalData:
    """So many labelled rows for all, drawn by seed; the rest is shuffled and each guest gets its equal share of it.

    The paper's section on learning from a limited intersection: what a guest gets of the rest, no other has.
    """
    guests, rows = len(data.guests), len(data.y_train)
    if not 1 <= labelled <= rows - guests:
        raise UserError(f"{labelled} labelled rows: from 1 to {rows - guests} of the {rows} of {data.name} is right")
    shuffle = numpy_generator(seed, "intersection", data.name, labelled).permutation(rows)
    common, share = shuffle[:labelled], (rows - labelled) // guests
    tables = []
    for number, guest in enumerate(data.guests):
        own = shuffle[labelled + number * share : labelled + (number + 1) * share]
        tables.append(replace(guest, train=guest.train[np.concatenate([common, own])]))
    where = np.tile(np.arange(labelled), (guests, 1))
    return replace(data, guests=tuple(tables), y_train=data.y_train[common], labelled=where)


def misaligned(data: VerticalData, seed: int) -> VerticalData:
    """The same rows for all, but every guest in an order of its own; only the owner knows which belong together."""
    tables, where = [], []
    for guest in data.guests:
        order = numpy_generator(seed, "misaligned", guest.name).permutation(data.rows)
        tables.append(replace(guest, train=guest.train[order]))
        where.append(np.argsort(order))
    return replace(data, guests=tuple(tables), labelled=np.stack(where))


def with_absences(data: VerticalData, share: float, seed: int) -> VerticalData:
    """Every guest lacks this share of training and test rows, drawn apart from the others; no row is lost to all."""
    guests, draw = len(data.guests), numpy_generator(seed, "absences", data.name)
    train, test = (_held(guests, rows, share, draw) for rows in (data.rows, len(data.y_test)))
    where = np.where(train, train.cumsum(1) - 1, ABSENT)
    tables = [
        replace(guest, train=guest.train[own], test=np.where(tests[:, None], guest.test, np.float32(0)))
        for guest, own, tests in zip(data.guests, train, test, strict=True)
    ]
    return replace(data, guests=tuple(tables), labelled=where, tested=test)


def fewer_rows(data: VerticalData, rows: int | None) -> VerticalData:
    """The data with so many training rows, drawn once for all seeds; test rows are all kept."""
    if rows is None:
        return data
    if not 64 <= rows <= data.rows:
        raise UserError(f"--rows {rows}: from 64 to {data.rows}, the training rows of {data.name}, is right")
    chosen = np.sort(numpy_generator(0, "fewer rows", data.name).permutation(data.rows)[:rows])
    guests = tuple(replace(guest, train=guest.train[chosen]) for guest in data.guests)
    return replace(data, guests=guests, y_train=data.y_train[chosen])


def _held(guests: int, rows: int, share: float, draw: np.random.Generator) -> NDArray[np.bool_]:
    """Who has which row: (guests, rows)."""
    held = draw.random((guests, rows)) >= share
    held[draw.integers(guests, size=rows), np.arange(rows)] |= ~held.any(0)
    return held
