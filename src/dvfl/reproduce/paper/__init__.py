"""The paper's tables and figures, one a file.

Uses `reproduce.outcome`. Start reading at `table1`, or at `width`, the shortest.
"""

from collections.abc import Mapping

from dvfl.errors import UserError, nearest
from dvfl.reproduce.outcome.experiment import Experiment
from dvfl.reproduce.paper import (
    communication,
    datasets,
    intersection,
    memory,
    misalignment,
    redundancy,
    simclr,
    table1,
    time,
    width,
)

_MODULES = (
    *(table1, redundancy, communication, intersection, misalignment),
    *(width, datasets, time, simclr, memory),
)
EXPERIMENTS: Mapping[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
ALL = "all"


def chosen(name: str) -> list[Experiment]:
    """The experiment of that name, or all of them."""
    if name == ALL:
        return list(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        raise UserError(f"no experiment is called '{name}'{nearest(name, (*EXPERIMENTS, ALL))}")
    return [EXPERIMENTS[name]]


__all__ = [
    "communication",
    "datasets",
    "intersection",
    "memory",
    "misalignment",
    "published",
    "redundancy",
    "simclr",
    "table1",
    "time",
    "width",
]
