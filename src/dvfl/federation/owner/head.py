"""A trained head by itself: all that it takes to predict from hosts' encodings, and how it lies in a checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from dvfl.federation.protocol.plan import Plan
from dvfl.parties.numerics.learner import Sgd
from dvfl.parties.owner import Owner
from dvfl.parties.party_networks import owner_supervision

_CENTRE, _SPREAD = "head.centre", "head.spread"


@dataclass(frozen=True)
class Head:
    """What was learned, and what encodings and targets were standardised by."""

    owner: Owner
    classes: tuple[str, ...] | None  # None: a regression
    hidden: tuple[int, ...] | None
    centre: Tensor
    spread: Tensor
    target_centre: float = 0.0
    target_spread: float = 1.0
    temperature: float = 1.0

    def outputs(self, joint: Tensor, present: Tensor | None) -> Tensor:
        """Class scores before the softmax, or numbers in the labels' own unit: (rows, outputs).

        `joint` is (rows, all hosts' widths), `present` (rows, hosts) marks who counts in each row.
        """
        x = ((joint - self.centre) / self.spread)[None]
        output = self.owner.predict(x, None if present is None else present[None])[0]
        return output * self.target_spread + self.target_centre

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint needs beside the owner's own."""
        return {_CENTRE: self.centre, _SPREAD: self.spread}

    def values(self) -> dict[str, Any]:
        """And as plain data."""
        return {
            "classes": None if self.classes is None else list(self.classes),
            "hidden": None if self.hidden is None else list(self.hidden),
            "target_centre": self.target_centre,
            "target_spread": self.target_spread,
            "temperature": self.temperature,
        }


def read_head(plan: Plan, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> Head:
    """Takes back what `tensors` and `values` gave, and the owner's parameters."""
    classes, hidden = (None if values[name] is None else tuple(values[name]) for name in ("classes", "hidden"))
    widths = (plan.host_width,) * len(plan.hosts)
    supervision = owner_supervision(plan.sizes, len(widths), sum(widths), len(classes or ()), hidden)
    owner = Owner(supervision, widths, tensors["parameters"], Sgd(0.0))  # it learns no more
    numbers = (values[name] for name in ("target_centre", "target_spread", "temperature"))
    return Head(owner, classes, hidden, tensors[_CENTRE], tensors[_SPREAD], *numbers)
