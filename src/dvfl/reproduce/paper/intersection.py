"""The paper's table on a limited intersection: few labelled rows that all have, the rest shared out among guests."""

from dvfl.reproduce.outcome.experiment import Change, Contrast, Experiment, Grid, Planned, Source
from dvfl.reproduce.outcome.results import Results
from dvfl.reproduce.paper.published import INTERSECTION

LABELLED = (128, 256, 512, 1024)
_EPOCHS = 160  # of the owner and of SplitNN here, by the paper's appendix
# Rows of DVFL with other hosts, or none. With few labels of images `tuned` concatenates anyway.
_HOSTS = {"paper": ("dvfl-hostless", "dvfl-concatenating"), "tuned": ("dvfl-hostless",)}
_STEPS = {"dvfl": ("owner_epochs", 600, 512), "splitnn-wait": ("epochs", 3000, 64)}  # without copies: rounds and batch


def _cells(preset: str) -> list[Planned]:
    changes: dict[str, Change] = {}
    names = ["dvfl", *_HOSTS[preset], "fedonce", "splitnn-wait", "svm"]
    if preset == "paper":
        changes = dict.fromkeys(names, (("owner_epochs", _EPOCHS),)) | {
            "splitnn-wait": (("epochs", _EPOCHS),),
            "svm": (),
        }
    cells = [
        Planned(
            name,
            {"labelled": labelled},
            change=changes.get(name, ()),
            source=Source(labelled=labelled),
            paper_mean=INTERSECTION.get(name, {}).get(labelled),
        )
        for name in names
        for labelled in LABELLED
    ]
    return cells if preset == "paper" else [*cells, *_without_copies()]


def _without_copies() -> list[Planned]:
    """`tuned` without the copies of labelled rows, for as many rounds as such few rows take."""
    return [
        Planned(
            name,
            {"labelled": labelled, "copies": 0},
            change=(("copies", 0), (epochs, -(-rounds // -(-labelled // batch)))),
            source=Source(labelled=labelled),
        )
        for name, (epochs, rounds, batch) in _STEPS.items()
        for labelled in LABELLED
    ]


def _remarks(results: Results) -> list[str]:
    copied = [
        "Preset tuned: dvfl's hosts concatenate, so it is fedonce with every encoding repeated by each host, and has no"
        " row dvfl-concatenating beside it.",
        "Preset tuned: dvfl and splitnn-wait both train on labelled rows and on copies of them, which guests warp alike"
        " by a key that they share; the support vector machine has the rows alone. Rows without copies are those of a"
        " federation whose guests do not know which rows are labelled, or have no images.",
    ]
    few = [
        "So few rows in batches of 64 make 2 to 16 updates an epoch, and owners and SplitNN stop early by the score of"
        " a tenth of the rows, 12 of 128. gaps.md has SplitNN without held-out rows and with Adam at its guests, which"
        " makes up most of its distance to the paper's figures.",
    ]
    return [
        *(copied if results.preset == "tuned" else few),
        "Labelled rows are drawn anew for every seed; the rest is shuffled and each guest gets a quarter that no other"
        " has. SplitNN trains on the labelled rows alone.",
        "dvfl-hostless and fedonce are the same training here: without faults nothing is asked for twice.",
        "svm is an RBF support vector machine on the pooled pixels of the labelled rows, which no federation has: what"
        " the labels alone give.",
    ]


def _against(other: str, **condition: int) -> list[Contrast]:
    """DVFL against another strategy with every number of labels; `condition`: what both are under beside it."""
    name = f"dvfl against {other}{', no copies' if condition else ''}"
    return [
        Contrast(f"{name}, {labelled} labels", ("dvfl", both), (other, both), pool=name)
        for labelled in LABELLED
        for both in ({"labelled": labelled, **condition},)
    ]


EXPERIMENT = Experiment(
    "intersection",
    "Learning from a limited intersection",
    10,
    _cells,
    Grid(
        row=lambda cell: f"{cell.strategy}, no copies" if "copies" in cell.condition else cell.strategy,
        column=lambda cell: str(cell.condition["labelled"]),
        corner="strategy",
        axis="labelled rows",
        at=lambda cell: float(cell.condition["labelled"]),
        logarithmic=True,
    ),
    (
        *(contrast for other in (*_HOSTS["paper"], "fedonce", "splitnn-wait", "svm") for contrast in _against(other)),
        *_against("splitnn-wait", copies=0),
    ),
    _remarks,
)
