"""The paper's claim on data beyond the intersection: hosts may learn from rows that do not belong together."""

from dvfl.reproduce.outcome.experiment import Contrast, Experiment, Grid, Planned, Source


def _cells(preset: str) -> list[Planned]:
    return [Planned("dvfl", {"aligned": aligned}, source=Source(misaligned=not aligned)) for aligned in (True, False)]


EXPERIMENT = Experiment(
    "misalignment",
    "Hosts trained on rows of different entities",
    10,
    _cells,
    Grid(
        row=lambda cell: cell.strategy,
        column=lambda cell: "aligned" if cell.condition["aligned"] else "misaligned",
        corner="strategy",
        axis="rows",
    ),
    (Contrast("misaligned against aligned", ("dvfl", {"aligned": False}), ("dvfl", {"aligned": True})),),
    lambda results: [
        "Misaligned: every guest goes through the same rows in an order of its own, so that hosts read encodings of"
        " different entities side by side. The owner's labels are aligned in both. The paper has no figure for it."
    ],
)
