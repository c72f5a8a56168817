"""The paper's figure on redundancy: one to four hosts while connections are lost."""

from dvfl.reproduce.outcome.experiment import Contrast, Experiment, Grid, Planned, unless
from dvfl.reproduce.paper.published import REDUNDANCY

UP = 0.5  # R_u, which the paper does not give


def _cells(preset: str) -> list[Planned]:
    return [
        Planned(
            "dvfl",
            {"hosts": hosts, "down": down},
            (f"connection:{down:g}:{UP:g}",) if down else (),
            unless("hosts", hosts, 4),
            paper_mean=mean,
        )
        for down, curve in REDUNDANCY.items()
        for hosts, mean in curve.items()
    ]


EXPERIMENT = Experiment(
    "redundancy",
    "Redundant hosts",
    10,
    _cells,
    Grid(
        row=lambda cell: f"R_d {cell.condition['down']:g}",
        column=lambda cell: str(cell.condition["hosts"]),
        corner="connections",
        axis="hosts",
        at=lambda cell: float(cell.condition["hosts"]),
    ),
    tuple(
        Contrast(
            f"4 hosts against 1, R_d {down:g}",
            ("dvfl", {"hosts": 4, "down": down}),
            ("dvfl", {"hosts": 1, "down": down}),
            pool="4 hosts against 1",
        )
        for down in REDUNDANCY
    ),
    lambda results: [f"R_u is {UP:g}; the paper does not give it. Its curves are read from the figure's source."],
)
