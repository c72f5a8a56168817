"""The results file of `dvfl reproduce`: every seed's value, ours beside the paper's."""

from dataclasses import dataclass, field
from typing import Any

from dvfl.errors import UserError
from dvfl.reproduce.outcome import statistics

_DIGITS = 4  # of accuracies in the file
_FIELDS = (  # that every cell may have
    *("strategy", "dataset", "condition", "seeds", "accuracy", "status", "mean", "two_sigma"),
    *("paper_mean", "paper_two_sigma", "command", "requests_repeated", "untouched"),
)


@dataclass(frozen=True)
class Cell:
    """One strategy under one condition, all its seeds."""

    strategy: str
    dataset: str
    condition: dict[str, Any]  # what varies; in table1 the keys kind, down, up
    seeds: list[int]
    accuracy: list[float | None]  # percent by seed; None where it stalled
    status: str  # "ok" or "stalled at round t"
    paper_mean: float | None
    paper_two_sigma: float | None
    command: str  # makes this cell again
    requests_repeated: int | None = None  # by a strategy that asks again for what was lost
    untouched: bool = False  # the condition's faults do not act on it: the numbers are those without faults
    fields: dict[str, Any] = field(default_factory=dict)  # of the experiment's own: bytes, seconds, more of the paper's

    @property
    def mean(self) -> float | None:
        """Of the seeds that the paper's filter keeps."""
        return statistics.summary(self.accuracy)[0]

    @property
    def two_sigma(self) -> float | None:
        """Of the seeds that the paper's filter keeps."""
        return statistics.summary(self.accuracy)[1]

    @property
    def unfiltered_mean(self) -> float | None:
        """Of all seeds that have a value."""
        known = [value for value in self.accuracy if value is not None]
        return sum(known) / len(known) if known else None

    @property
    def by_seed(self) -> dict[int, float | None]:
        """The accuracy of every seed."""
        return dict(zip(self.seeds, self.accuracy, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the statistics are those of the rounded accuracies beside them."""
        accuracy = [_rounded(value) for value in self.accuracy]
        mean, two_sigma = statistics.summary(accuracy)
        plain = {
            "strategy": self.strategy,
            "dataset": self.dataset,
            "condition": self.condition,
            "seeds": self.seeds,
            "accuracy": accuracy,
            "status": self.status,
            "mean": _rounded(mean),
            "two_sigma": _rounded(two_sigma),
            "paper_mean": self.paper_mean,
            "paper_two_sigma": self.paper_two_sigma,
            "command": self.command,
        }
        repeated = {} if self.requests_repeated is None else {"requests_repeated": self.requests_repeated}
        untouched = {"untouched": True} if self.untouched else {}
        return {**plain, **repeated, **untouched, **self.fields}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> "Cell":
        """Takes back what `to_dict` gave; the statistics are worked out anew."""
        return Cell(
            strategy=plain["strategy"],
            dataset=plain["dataset"],
            condition=dict(plain["condition"]),
            seeds=list(plain["seeds"]),
            accuracy=list(plain["accuracy"]),
            status=plain["status"],
            paper_mean=plain["paper_mean"],
            paper_two_sigma=plain["paper_two_sigma"],
            command=plain["command"],
            requests_repeated=plain.get("requests_repeated"),
            untouched=plain.get("untouched", False),
            fields={name: value for name, value in plain.items() if name not in _FIELDS},
        )


@dataclass(frozen=True)
class Results:
    """One experiment: its cells, and how, where and how long they were made."""

    experiment: str
    preset: str
    machine: dict[str, Any]
    versions: dict[str, str]
    command: str
    seconds: float  # summed over resumed parts
    cells: list[Cell]
    rows: int | None = None  # training rows used; None: all
    note: str = ""  # what a reader must know about the data

    def cell(self, strategy: str, condition: dict[str, Any]) -> Cell | None:
        """The strategy's cell under that condition, where there is one."""
        found = (cell for cell in self.cells if cell.strategy == strategy and cell.condition == condition)
        return next(found, None)

    def to_dict(self) -> dict[str, Any]:
        """What NAME.json holds."""
        plain = {
            "experiment": self.experiment,
            "preset": self.preset,
            "machine": self.machine,
            "versions": self.versions,
            "command": self.command,
            "seconds": self.seconds,
            "rows": self.rows,
            "cells": [cell.to_dict() for cell in self.cells],
        }
        return {**plain, "note": self.note} if self.note else plain

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> "Results":
        """Takes back what `to_dict` gave."""
        try:
            return Results(
                experiment=plain["experiment"],
                preset=plain["preset"],
                machine=dict(plain["machine"]),
                versions=dict(plain["versions"]),
                command=plain["command"],
                seconds=plain["seconds"],
                cells=[Cell.from_dict(cell) for cell in plain["cells"]],
                rows=plain["rows"],
                note=plain.get("note", ""),
            )
        except KeyError as error:
            raise UserError(
                f"results: the field {error} is missing; a file that `dvfl reproduce` wrote is right"
            ) from error


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
