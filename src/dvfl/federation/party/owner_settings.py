"""How the owner of a federation trains its head."""

from dataclasses import dataclass

from dvfl.parties.numerics.learner import Rule, Sgd
from dvfl.parties.numerics.schedules import Schedule


@dataclass(frozen=True)
class OwnerSettings:
    """How the owner trains; nobody else needs to know."""

    epochs: int = 100
    batch: int = 64
    rule: Rule = Sgd(0.16)
    schedule: Schedule = "cosine"
    standardise: bool = True
    dropout: float = 0.5  # of single encoding dimensions
    host_dropout: float = 0.0  # of whole hosts, row by row
    validation: float = 0.0  # part of the labelled rows held out for early stopping; 0 switches it off
    patience: int = 20
    head: tuple[int, ...] | None = None  # hidden widths; None: the sizing rule's
    smoothing: float = 0.0  # of labels: this part of each is shared out among all classes
    calibration: float = 0.05  # part of the labelled rows kept from training, for the temperature
