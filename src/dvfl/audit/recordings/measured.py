"""What an attack found, with everything that it rests on."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

# R2 and AUC as shares, the others in percent; of labels, each class counts the same, however rare.
Measure = Literal["R2", "AUC", "balanced accuracy", "share of rows"]
Control = Literal["", "raw features", "random encoder", "nothing seen"]


@dataclass(frozen=True)
class Measured:
    """One figure of one attack: who, with which knowledge, how well, seed by seed."""

    attack: str  # its file's name: "inversion"
    way: str  # how it is done: "ridge"
    who: str  # "a host"
    saw: str  # "encodings of one guest"
    known: int  # rows that it knew beside that
    known_of: str  # what of them: "columns", "labels", "labels of each class", "nothing"
    target: str  # what it is after: "a guest's columns", "labels"
    measure: Measure
    values: tuple[float, ...]  # of each seed
    control: Control = ""  # not empty: the same with something else in the encodings' place
    channel: bool = True  # False: there is nothing to look at, and the value is that of a guess

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "values": list(self.values)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Measured":
        """Takes back what `as_dict` gave."""
        return cls(**{**plain, "values": tuple(plain["values"])})


def of_earlier_releases(figures: Iterable[Measured], saw: str) -> list[Measured]:
    """Figures of an attack that looked at several releases of each row, beside those of one that did not."""
    return [replace(one, way=f"{one.way}, earlier releases too", saw=saw) for one in figures if not one.control]


def r2(x: Tensor, guess: Tensor) -> Tensor:
    """The share of the variance of (stack, rows, columns) that a guess explains; below 0 where it is worse than the
    mean: (stack,)."""
    left = (x - guess).double().square().sum((1, 2))
    whole = (x - x.mean(1, keepdim=True)).double().square().sum((1, 2))
    return 1 - left / whole


def balanced_accuracy(y: Tensor, scores: Tensor) -> Tensor:
    """In percent, of class scores (stack, rows, classes) for classes (stack, rows): (stack,).

    The mean of what is right of each class that is there: whoever names one class for all has 1 / classes.
    """
    right = (scores.argmax(-1) == y).double()
    own = torch.nn.functional.one_hot(y, scores.shape[-1]).double()  # (stack, rows, classes)
    count = own.sum(1)
    each = (own * right[..., None]).sum(1) / count.clamp(min=1)
    return each.sum(1) / (count > 0).sum(1) * 100


def auc(marked: Tensor, scores: Tensor) -> Tensor:
    """How likely a row that is `marked` (stack, rows) has the larger score (stack, rows); ties count half: (stack,)."""
    areas = []
    for own, score in zip(marked.bool(), scores.double(), strict=True):
        yes, no = score[own], score[~own].sort().values
        places = torch.searchsorted(no, yes) + torch.searchsorted(no, yes, right=True)
        areas.append(places.double().mean() / 2 / len(no))
    return torch.stack(areas)
