"""The appendix' table on time: forward, waiting and backward per epoch and role, and how long a guest must be alive."""

from dvfl.experiments.declared import Experiment, Planned
from dvfl.experiments.paper.published import TIME


def _cells(preset: str) -> list[Planned]:
    return [
        Planned(strategy, {"quantity": quantity}, fields={"paper_seconds": seconds})
        for strategy, column in TIME.items()
        for quantity, seconds in column.items()
    ]


EXPERIMENT = Experiment("time", "Time per epoch and role", 1, _cells, measured=True)
