"""The data sets known by name, and how their test rows are chosen."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dvfl.data.sets.embedded import breast_cancer, diabetes, digits, wine
from dvfl.data.sets.paper_sets import caltech7, credit_card, fashion_mnist, handwritten, mnist, parkinsons
from dvfl.data.split.vertical import Split, SplitRule, VerticalData, Wanted
from dvfl.errors import UserError, nearest
from dvfl.plugins import Registry


@dataclass(frozen=True)
class DataSet:
    """A data set by name: how it is read, and how its test rows can be chosen, the usual way first."""

    read: Callable[[Wanted], VerticalData]
    splits: tuple[SplitRule, ...] = ("random",)  # a random fifth of the rows, by class


DATASETS: Registry[DataSet] = Registry(
    "data set",
    "dvfl.datasets",
    {
        "digits": DataSet(digits),
        "mnist": DataSet(mnist, ("official",)),
        "fashion_mnist": DataSet(fashion_mnist, ("official",)),
        "credit_card": DataSet(credit_card),
        "parkinsons": DataSet(parkinsons, ("subject", "random")),
        "caltech7": DataSet(caltech7),
        "handwritten": DataSet(handwritten),
        "breast_cancer": DataSet(breast_cancer),
        "wine": DataSet(wine),
        "diabetes": DataSet(diabetes),
    },
    DataSet,
)

_SEEDS = 2**32  # that scikit-learn's split knows


def load(
    name: str,
    *,
    data_dir: Path | None = None,
    guests: int | None = None,
    split: SplitRule | None = None,
    split_seed: int = 0,
) -> VerticalData:
    """The data set `name`, shared among `guests` guests (its own number where None).

    `split` says how test rows are chosen (the data set's own way where None); another `split_seed` repeats the draw.
    """
    name = dataset_name(name)
    return DATASETS[name].read(Wanted(data_dir, guests, chosen_split(name, split, split_seed)))


def dataset_name(text: str) -> str:
    """The data set that is meant; a hyphen is as good as an underscore."""
    name = text.replace("-", "_")
    if name not in DATASETS:
        raise UserError(f"no data set is called '{text}'{nearest(name, DATASETS)}")
    return name


def chosen_split(name: str, rule: SplitRule | None, seed: int) -> Split:
    """How test rows of this data set are chosen; refuses what makes no sense for it."""
    possible = DATASETS[name].splits
    if rule is not None and rule not in possible:
        raise UserError(f"{name} cannot be split '{rule}': {' or '.join(possible)} is right")
    split = Split(rule or possible[0], seed)
    if split.rule == "official" and seed != 0:
        raise UserError(f"{name} has one official split, which is not drawn: no split seed but 0 is right")
    if not 0 <= seed < _SEEDS:
        raise UserError(f"split seed {seed}: from 0 to {_SEEDS - 1} is right")
    return split
