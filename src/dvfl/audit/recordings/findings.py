"""What an audit found of one federation: its accuracy, every attack's figures, and which of them count."""

from dataclasses import dataclass, field
from typing import Any

from dvfl.audit.recordings.measured import Measured

UNDEFENDED = "none"


@dataclass(frozen=True)
class Finding:
    """One strategy with one defence."""

    strategy: str
    defence: str  # its name; none
    words: str  # what it is
    accuracy: tuple[float, ...]  # test accuracy of each seed, in percent
    figures: tuple[Measured, ...]
    seconds: float  # of training and attacks
    machine: dict[str, str]  # where it was trained and attacked, and with what: a page may be made elsewhere
    versions: dict[str, str]
    noise: float = 0.0  # of a release, in parts of the clip
    releases: int = 1  # how often a row's encoding was sent
    epsilon: float | None = None  # of the encoders' training
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.strategy}, {self.defence}" if self.defence != UNDEFENDED else self.strategy

    @property
    def mean(self) -> float:
        return sum(self.accuracy) / len(self.accuracy)

    def together(self, known: int) -> Measured | None:
        """The best that a host and a guest together can do: what they do together, or the host's best alone."""
        own = [self.strongest("collusion", known), self.strongest("inversion", known)]
        return max((one for one in own if one is not None), key=lambda one: one.mean, default=None)

    def strongest(self, attack: str, known: int | None = None, control: str = "", way: str = "") -> Measured | None:
        """The attack's best figure, at one number of known rows where that is given."""
        own = [
            one
            for one in self.figures
            if one.attack == attack
            and one.control == control
            and known in (None, one.known)
            and (not way or one.way.startswith(way))
        ]
        return max(own, key=lambda one: one.mean, default=None)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {name: value for name, value in vars(self).items() if name != "figures"}
        return {**plain, "accuracy": list(self.accuracy), "figures": [one.as_dict() for one in self.figures]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Finding":
        """Takes back what `as_dict` gave."""
        figures = tuple(Measured.from_dict(one) for one in plain["figures"])
        return cls(**{**plain, "accuracy": tuple(plain["accuracy"]), "figures": figures})
