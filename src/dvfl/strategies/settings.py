"""Everything a training can be told."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from dvfl.parties.learner import Adam, Rule, Sgd

Schedule = Literal["constant", "cosine"]


@dataclass(frozen=True)
class Settings:
    """One training of DVFL. The defaults are the paper's for MNIST (its appendix on hyperparameters)."""

    hosts: int = 4
    host_model: Literal["autoencoder", "concatenate"] = "autoencoder"
    batch: int = 64
    guest_epochs: int = 20
    host_epochs: int = 40
    owner_epochs: int = 60
    period: int = 1  # K: guests push in every K-th epoch
    guest_rule: Rule = Adam(2e-3, weight_decay=1e-5)
    host_rule: Rule = Adam(2e-3, weight_decay=1e-5)
    owner_rule: Rule = Sgd(8e-2)
    guest_schedule: Schedule = "constant"
    host_schedule: Schedule = "constant"
    owner_schedule: Schedule = "constant"
    standardise: bool = False  # the owner standardises each encoding dimension with its training rows' statistics
    owner_dropout: float = 0.0  # of single encoding dimensions at the owner
    guest_dropout: float = 0.0  # party-wise: a guest is hidden from a host, row by row
    host_dropout: float = 0.0  # party-wise: a host is hidden from the owner, row by row
    validation: float = 0.1  # part of the training rows held out for the owner's early stopping; 0 switches it off
    patience: int = 20  # owner epochs without improvement on the held-out rows
    replay: Literal["in order", "shuffled"] = "shuffled"  # how hosts go through their history once guests are done
    history_bytes: int | None = None  # replay budget of one replica; None keeps all communicated epochs
    history_dtype: Literal["float16", "float32"] = "float16"
    w_g: int | None = None  # width of all guests' encodings together; None: the sizing rule's
    w_h: int | None = None  # width of a host's encoding; None: the sizing rule's

    @property
    def communicated(self) -> int:
        """Number of epochs in which encodings are pushed."""
        return self.guest_epochs // self.period

    @property
    def replayed(self) -> int:
        """Host epochs that are drawn from the replay buffer."""
        return max(0, self.host_epochs - self.communicated)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a manifest."""
        plain = asdict(self)
        for name in ("guest_rule", "host_rule", "owner_rule"):
            rule = getattr(self, name)
            plain[name] = {"name": type(rule).__name__.lower(), **asdict(rule)}
        return plain

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> "Settings":
        """Takes back what `as_dict` gave."""
        values = dict(plain)
        for name in ("guest_rule", "host_rule", "owner_rule"):
            rule = dict(values[name])
            values[name] = {"adam": Adam, "sgd": Sgd}[rule.pop("name")](**rule)
        return Settings(**values)
