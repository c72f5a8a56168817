"""The paper's Table 1 as a declaration: eight strategies under ten conditions."""

from typing import Any

from dvfl.experiments.blocks import Training
from dvfl.experiments.published import TABLE1

DATASET = "mnist"
DOWN = 0.3  # R_d in all of the paper's columns

Condition = dict[str, Any]


def conditions() -> list[Condition]:
    """The columns from left to right."""
    return [{"kind": kind, "down": None if up is None else DOWN, "up": up} for kind, up in next(iter(TABLE1.values()))]


def faults(condition: Condition) -> tuple[str, ...]:
    """A column's faults as on a command line."""
    return () if condition["kind"] == "none" else (f"{condition['kind']}:{condition['down']:g}:{condition['up']:g}",)


def trainings(seeds: int) -> list[Training]:
    """Every training of the table, row by row."""
    return [
        Training(name, faults(condition), seed)
        for name in TABLE1
        for condition in conditions()
        for seed in range(seeds)
    ]


def published(name: str, condition: Condition) -> tuple[float | None, float | None]:
    """The paper's mean and 2 sigma of a cell, nothing where it has none."""
    return TABLE1[name][condition["kind"], condition["up"]] or (None, None)
