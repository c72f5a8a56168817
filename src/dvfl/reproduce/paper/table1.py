"""The paper's Table 1: eight strategies under ten conditions, and ours beside them."""

from dvfl.reproduce.outcome.experiment import Condition, Experiment, Planned
from dvfl.reproduce.paper.published import TABLE1

DOWN = 0.3  # R_d in all of the paper's columns
SEEDS = 20  # spreads are compared too
# Rows that the paper does not have: DVFL without hosts that learn, and a FedOnce that asks until it is heard.
_ADDED = ("dvfl-concatenating", "dvfl-hostless", "fedonce")
_NO_LEARNING_HOST = ("dvfl-hostless", "dvfl-concatenating")
_REPLAY = "dvfl-in-order"  # the order that `tuned` has anyway
# From top to bottom.
ROWS = ("dvfl", _REPLAY, *(name for name in _ADDED if name.startswith("dvfl")), *list(TABLE1)[1:5], "fedonce")
ROWS += tuple(name for name in TABLE1 if name not in ROWS)


def conditions() -> list[Condition]:
    """The columns from left to right."""
    return [{"kind": kind, "down": None if up is None else DOWN, "up": up} for kind, up in next(iter(TABLE1.values()))]


def faults(condition: Condition) -> tuple[str, ...]:
    """A column's faults as on a command line."""
    return () if condition["kind"] == "none" else (f"{condition['kind']}:{condition['down']:g}:{condition['up']:g}",)


def _cells(preset: str) -> list[Planned]:
    added = (*_ADDED, _REPLAY) if preset == "paper" else _ADDED
    cells = [_ours(name, condition) for name in added for condition in conditions()]
    for name, row in TABLE1.items():
        for condition in conditions():
            mean, two_sigma = row[condition["kind"], condition["up"]] or (None, None)
            cells.append(Planned(name, condition, faults(condition), paper_mean=mean, paper_two_sigma=two_sigma))
    return cells


def _ours(name: str, condition: Condition) -> Planned:
    """Where no host learns, nothing is pushed in training, and only faults of guests act."""
    if name in _NO_LEARNING_HOST and condition["kind"] in ("connection", "host"):
        return Planned(name, condition, untouched=True)
    return Planned(name, condition, faults(condition))


EXPERIMENT = Experiment("table1", "Table 1: accuracy under faults", SEEDS, _cells)
