"""The appendix' table on time: forward, waiting and backward per epoch and role, and how long a guest must be alive."""

from dvfl.reproduce.outcome.experiment import Experiment, Planned
from dvfl.reproduce.paper.published import TIME

EPOCHS = 20  # of every strategy in the paper's line on processes: its figures are 20 times their parts
PROCESS = "guest process"
OWN_PROCESS = "guest process, own epochs"  # of each strategy's preset; the paper has no such line


def _cells(preset: str) -> list[Planned]:
    return [
        Planned(strategy, {"quantity": quantity}, fields={"paper_seconds": seconds})
        for strategy, column in TIME.items()
        for quantity, seconds in (*column.items(), (OWN_PROCESS, None))
    ]


# On a CPU whatever `--device` says, as in the paper.
EXPERIMENT = Experiment("time", "Time per epoch and role", 1, _cells, measured=True)
