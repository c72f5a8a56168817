"""The appendix' table on model width: all guests' encodings together (W_g) and a host's (W_h)."""

from dvfl.reproduce.outcome.experiment import Experiment, Grid, Planned
from dvfl.reproduce.paper.published import WIDTH


def _cells(preset: str) -> list[Planned]:
    return [
        Planned(
            "dvfl",
            {"w_g": w_g, "w_h": w_h},
            change=() if (w_g, w_h) == (320, 160) else (("w_g", w_g), ("w_h", w_h)),
            paper_mean=mean,
        )
        for w_h, row in WIDTH.items()
        for w_g, mean in row.items()
    ]


EXPERIMENT = Experiment(
    "width",
    "Width of the encodings",
    3,
    _cells,
    Grid(
        row=lambda cell: f"W_h {cell.condition['w_h']}",
        column=lambda cell: str(cell.condition["w_g"]),
        corner="host",
        axis="W_g",
        at=lambda cell: float(cell.condition["w_g"]),
    ),
    remarks=lambda results: [
        "The paper searched hyperparameters anew for every cell; all of ours have the preset's.",
    ],
)
