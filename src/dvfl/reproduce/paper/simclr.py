"""The appendix' figures on SimCLR: guests that compare altered copies, no hosts, guests and connections failing."""

from dvfl.reproduce.outcome.experiment import Condition, Experiment, Grid, Planned
from dvfl.reproduce.outcome.results import Cell
from dvfl.reproduce.paper.published import SIMCLR
from dvfl.reproduce.paper.table1 import DOWN, faults

LATENTS = (80, 160)  # what a guest emits; the paper's text has both
_GUESTS = 4


def _cells(preset: str) -> list[Planned]:
    return [
        Planned(
            "dvfl",
            {**fault, "latent": latent},
            () if kind == "connection" else faults(fault),
            (("guest_objective", "simclr"), ("hosts", 0), ("w_g", _GUESTS * latent)),
            paper_mean=mean,
            untouched=kind == "connection",
        )
        for latent in LATENTS
        for (kind, up), mean in SIMCLR.items()
        for fault in (_fault(kind, up),)
    ]


def _fault(kind: str, up: float | None) -> Condition:
    return {"kind": kind, "down": None if up is None else DOWN, "up": up}


def _column(cell: Cell) -> str:
    kind, up = cell.condition["kind"], cell.condition["up"]
    return "no faults" if up is None else f"{kind}, R_u {up:g}"


EXPERIMENT = Experiment(
    "simclr",
    "SimCLR in place of reconstruction",
    10,
    _cells,
    Grid(
        row=lambda cell: f"latent {cell.condition['latent']}",
        column=_column,
        corner="guests",
        axis="faults",
    ),
    remarks=lambda results: [
        "Without hosts nothing is pushed in training, and faults do not act when the owner collects the encodings, so"
        " faults of connections change nothing here. The paper does not say where its own acted.",
        "The paper gives guests 80 outputs and the projector 160 inputs; its one figure stands beside both of ours.",
    ],
)
