"""The paper's figure on communication: encodings pushed in every K-th guest epoch."""

from dvfl.reproduce.outcome.experiment import Contrast, Experiment, Grid, Planned, unless
from dvfl.reproduce.outcome.results import Cell
from dvfl.reproduce.paper.published import COMMUNICATION_FIGURE, COMMUNICATION_TEXT

PERIODS = (1, 5, 10, 15, 20)


def _cells(preset: str) -> list[Planned]:
    return [
        Planned(
            "dvfl",
            {"period": period},
            change=unless("period", period, 1),
            paper_mean=COMMUNICATION_FIGURE.get(period),
            fields={"paper_mean_in_text": COMMUNICATION_TEXT.get(period)},
        )
        for period in PERIODS
    ]


def _sent(cell: Cell) -> str:
    return f"{cell.fields['bytes_sent_per_guest'] / 1e9:.3f} GB"


def _in_text(cell: Cell) -> str:
    mean = cell.fields["paper_mean_in_text"]
    return "" if mean is None else f"{mean:.2f}"


EXPERIMENT = Experiment(
    "communication",
    "Communication period",
    10,
    _cells,
    Grid(
        row=lambda cell: cell.strategy,
        column=lambda cell: str(cell.condition["period"]),
        corner="strategy",
        axis="K: guest epochs per communication epoch",
        at=lambda cell: float(cell.condition["period"]),
        also=(
            ("Sent by each guest in training", "To all its hosts together.", _sent),
            ("The paper's text", "The text of the same section has other figures than its plot.", _in_text),
        ),
    ),
    (Contrast("K = 1 against K = 20", ("dvfl", {"period": 1}), ("dvfl", {"period": 20})),),
    lambda results: [
        "The paper's plot and its text disagree (97.80 and 97.30 at K = 1); the plot is what the figure and the"
        " differences show, the text has a table of its own."
    ],
)
