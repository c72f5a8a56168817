"""The attacks of an audit, by name; other packages add theirs by an entry point."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dvfl.audit.attacks import (
    collusion,
    completion,
    direct_labels,
    gradient_labels,
    inversion,
    membership,
    predictions,
    probing,
)
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording
from dvfl.plugins import Registry

Measure = Callable[[Recording, Effort], list[Measured]]


@dataclass(frozen=True)
class Attack:
    """What somebody works out from what a party saw of a trained federation.

    Attributes:
        measure: figures from a recording, at an effort; none where the attack does not apply.
        controlled: whether it is measured on raw columns and untrained encoders as well.
        earlier: measures what a row's earlier encodings add, where they do.
        earlier_saw: what is then seen, in words.
    """

    measure: Measure
    controlled: bool = False
    earlier: Measure | None = None
    earlier_saw: str = ""


# What attackers do while a federation trains (backdoor, active completion) is part of its training: dvfl.audit.audit.
ATTACKS: Registry[Attack] = Registry(
    "attack",
    "dvfl.attacks",
    {
        "inversion": Attack(
            inversion.measure,
            controlled=True,
            earlier=partial(inversion.measure, with_others=False),
            earlier_saw="all encodings of one guest",
        ),
        "collusion": Attack(collusion.measure),
        "probing": Attack(
            probing.measure,
            controlled=True,
            earlier=probing.measure,
            earlier_saw="all encodings of all guests",
        ),
        "predictions": Attack(predictions.measure),
        "membership": Attack(membership.measure),
        "gradient_labels": Attack(gradient_labels.measure),
        "direct_labels": Attack(direct_labels.measure),
        "completion": Attack(completion.measure, controlled=True),
    },
    Attack,
)
