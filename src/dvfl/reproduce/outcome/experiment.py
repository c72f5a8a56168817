"""What an experiment consists of: cells, what is to be shown of them, and which of them are set against each other."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from dvfl.reproduce.outcome.results import Cell, Results

Condition = dict[str, Any]
Change = tuple[tuple[str, Any], ...]  # fields of a strategy's settings and their values


@dataclass(frozen=True)
class Source:
    """Data by name. What a seed draws anew is another draw for every seed of a cell."""

    dataset: str = "mnist"
    split: Literal["subject", "random"] | None = None  # test rows drawn by the training's seed; None: the official ones
    labelled: int | None = None  # rows that all guests have, drawn by seed; the rest is shared out. None: all rows
    misaligned: bool = False  # every guest has its rows in an order of its own, drawn by seed

    @property
    def varies(self) -> bool:
        """Whether another seed means other rows."""
        return self.split is not None or self.labelled is not None or self.misaligned


MNIST = Source()


@dataclass(frozen=True)
class Planned:
    """A cell before it is made: who trains, on what, under which faults, changed in what from the preset."""

    strategy: str  # or a reference (dvfl.reproduce.references)
    condition: Condition
    faults: tuple[str, ...] = ()
    change: Change = ()
    source: Source = MNIST
    paper_mean: float | None = None
    paper_two_sigma: float | None = None
    untouched: bool = False  # the condition's faults do not act on it: the numbers are those without faults
    fields: Condition = field(default_factory=dict)  # of the cell's own, beside those that every cell has


@dataclass(frozen=True)
class Contrast:
    """Two cells to be set against each other, seed by seed: the first should not be behind the second."""

    label: str
    one: tuple[str, Condition]  # strategy and condition
    other: tuple[str, Condition]
    dataset: str | None = None  # where conditions alone do not tell cells apart
    pool: str | None = None  # contrasts of one pool ask the same under several conditions, and are tested together too


@dataclass(frozen=True)
class Grid:
    """How cells are laid out as a table and drawn."""

    row: Callable[[Cell], str]
    column: Callable[[Cell], str]
    corner: str  # what rows are
    axis: str  # what columns are
    at: Callable[[Cell], float] | None = None  # a column's place on a scale; None: columns are names
    logarithmic: bool = False  # that scale
    also: tuple[tuple[str, str, Callable[[Cell], str]], ...] = ()  # further tables: title, note, what is shown


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    title: str
    seeds: int  # trainings of a cell, unless somebody asks for another number
    cells: Callable[[str], list[Planned]]  # for a preset
    grid: Grid | None = None  # None: it has pages of its own
    contrasts: tuple[Contrast, ...] = ()
    remarks: Callable[[Results], list[str]] = lambda results: []  # what a reader must know
    measured: bool = False  # its cells are times of steps, not trainings


def unless(name: str, value: Any, usual: Any) -> Change:
    """A change of one field; none where the preset has that value already, so that equal trainings are made once."""
    return () if value == usual else ((name, value),)
