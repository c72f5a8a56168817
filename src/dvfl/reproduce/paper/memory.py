"""Hosts with little memory: the replay cut to the last activations (the appendix on replay, which has no figure)."""

from dvfl.reproduce.outcome.experiment import Contrast, Experiment, Grid, Planned, unless
from dvfl.reproduce.outcome.results import Cell

_BATCH_BYTES = 64 * 320 * 2  # a round of all guests' encodings, in half precision
_ROUNDS = 938  # of an epoch of MNIST
KEPT = (20.0, 10.0, 5.0, 2.0, 1.0, 0.25, 0.05)  # epochs of encodings; the first is all there are


def _bytes(kept: float) -> int:
    return int(kept * _ROUNDS) * _BATCH_BYTES


def _cells(preset: str) -> list[Planned]:
    return [
        Planned(
            "dvfl",
            {"epochs_kept": kept},
            change=unless("history_bytes", None if kept == KEPT[0] else _bytes(kept), None),
            fields={"bytes": _bytes(kept)},
        )
        for kept in KEPT
    ]


def _megabytes(cell: Cell) -> str:
    return f"{cell.fields['bytes'] / 1e6:,.0f} MB"


EXPERIMENT = Experiment(
    "memory",
    "Replay of the last activations only",
    10,
    _cells,
    Grid(
        row=lambda cell: cell.strategy,
        column=lambda cell: f"{cell.condition['epochs_kept']:g}",
        corner="strategy",
        axis="epochs of encodings that are kept",
        at=lambda cell: float(cell.condition["epochs_kept"]),
        logarithmic=True,
        also=(("Bytes kept", "Of one training's replay, shared by its hosts.", _megabytes),),
    ),
    (
        Contrast("one epoch kept against all 20", ("dvfl", {"epochs_kept": 1.0}), ("dvfl", {"epochs_kept": 20.0})),
        Contrast("1/20 epoch against all 20", ("dvfl", {"epochs_kept": 0.05}), ("dvfl", {"epochs_kept": 20.0})),
    ),
    lambda results: ["The paper says that the last few activations serve and gives no figure; hosts share one store."],
)
