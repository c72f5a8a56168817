"""The paper's Table 1: eight strategies under ten conditions."""

from dvfl.experiments.declared import Condition, Experiment, Planned
from dvfl.experiments.paper.published import TABLE1

DOWN = 0.3  # R_d in all of the paper's columns


def conditions() -> list[Condition]:
    """The columns from left to right."""
    return [{"kind": kind, "down": None if up is None else DOWN, "up": up} for kind, up in next(iter(TABLE1.values()))]


def faults(condition: Condition) -> tuple[str, ...]:
    """A column's faults as on a command line."""
    return () if condition["kind"] == "none" else (f"{condition['kind']}:{condition['down']:g}:{condition['up']:g}",)


def _cells(preset: str) -> list[Planned]:
    cells = []
    for name, row in TABLE1.items():
        for condition in conditions():
            mean, two_sigma = row[condition["kind"], condition["up"]] or (None, None)
            cells.append(Planned(name, condition, faults(condition), paper_mean=mean, paper_two_sigma=two_sigma))
    return cells


EXPERIMENT = Experiment("table1", "Table 1: accuracy under faults", 10, _cells)
