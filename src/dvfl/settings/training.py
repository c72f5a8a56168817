"""Everything a training can be told."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, TypeVar

from dvfl.parties.host import HostModel
from dvfl.parties.numerics.learner import Adam, Rule, Sgd
from dvfl.parties.numerics.schedules import Schedule
from dvfl.parties.objectives.objective import ObjectiveName

Defence = Literal["none", "max_norm", "sign"]  # of gradients that are sent back (strategies/split/gradient_defence.py)


class _Plain:
    """To plain data and back, for a manifest."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = asdict(self)  # type: ignore[call-overload]
        for name in plain:
            rule = getattr(self, name)
            if isinstance(rule, Rule):
                plain[name] = {"name": type(rule).__name__.lower(), **asdict(rule)}
        return plain  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Takes back what `as_dict` gave."""
        values = dict(plain)
        for name, value in values.items():
            if isinstance(value, dict):
                rule = dict(value)
                values[name] = {"adam": Adam, "sgd": Sgd}[rule.pop("name")](**rule)
            elif isinstance(value, list):
                values[name] = tuple(value)
        return cls(**values)

    @classmethod
    def names(cls) -> frozenset[str]:
        """What can be set."""
        return frozenset(field.name for field in fields(cls))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Settings(_Plain):
    """One training of DVFL, or of FedOnce. The defaults are the paper's for MNIST (its appendix on hyperparameters)."""

    hosts: int = 4
    host_model: HostModel = "autoencoder"
    guest_objective: ObjectiveName = "reconstruction"
    host_objective: ObjectiveName = "reconstruction"
    temperature: float = 0.5  # of SimCLR's similarities
    adversary: float = 0.0  # weight of a decoder that guests learn against beside SimCLR, to keep columns to themselves
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
    copies: int = 0  # altered copies of each labelled row that guests encode for the owner beside the row itself
    entity_augmentation: bool = False  # the owner puts rows of different labelled entities together (the paper's)
    smoothing: float = 0.0  # part of a label that the owner spreads over all classes
    guest_noise: float = 0.0  # part of a guest's input values that it does not see and learns to reconstruct
    guest_dropout: float = 0.0  # party-wise: a guest is hidden from a host, row by row; from the owner if none learns
    host_dropout: float = 0.0  # party-wise: a host is hidden from the owner, row by row
    partial: int = 0  # how many times more hosts encode each labelled row, with guests hidden by `guest_dropout`
    validation: float = 0.1  # part of the training rows held out for the owner's early stopping; 0 switches it off
    patience: int = 20  # owner epochs without improvement on the held-out rows
    registers: Literal["batch", "row"] = "batch"  # hosts hold a guest's newest batch, or the newest of each of its rows
    replay: Literal["in order", "shuffled"] = "shuffled"  # how hosts go through their history once guests are done
    history_bytes: int | None = None  # replay budget of one replica; None keeps all communicated epochs
    history_dtype: Literal["float16", "float32"] = "float16"
    guest_hidden: int | None = None  # width of each guest's hidden layer; None: the sizing rule's
    w_g: int | None = None  # width of all guests' encodings together; None: the sizing rule's
    w_h: int | None = None  # width of a host's encoding; None: the sizing rule's
    head: tuple[int, ...] | None = None  # hidden widths of the owner's network; None: the sizing rule's
    flatten: bool = False  # guests make all directions of their encodings equally strong before they leave
    clip: float | None = None  # the longest encoding of a row that leaves a guest (Euclidean norm); None: any
    noise: float = 0.0  # standard deviation of the Gaussian noise on what leaves a guest, in units of `clip`

    @property
    def communicated(self) -> int:
        """Number of epochs in which encodings are pushed."""
        return self.guest_epochs // self.period

    @property
    def replayed(self) -> int:
        """Host epochs that are drawn from the replay buffer."""
        return max(0, self.host_epochs - self.communicated)

    @property
    def alters(self) -> bool:
        """Whether something is done to encodings before they leave a guest."""
        return self.flatten or self.clip is not None

    @property
    def releases(self) -> int:
        """How often, at most, noise is drawn anew for an encoding of one training row that leaves its guest.

        Once in every epoch of pushes, whether hosts train on them or not, since they see them; once for the owner, and
        once for each copy. Passes with guests hidden are made of what hosts were sent once.
        """
        learning = self.hosts > 0 and self.host_model == "autoencoder"
        return (self.communicated if learning else 0) + 1 + self.copies


@dataclass(frozen=True)
class SplitSettings(_Plain):
    """One training of a split network: SplitNN, VAFL or VFB2. The defaults are SplitNN's for MNIST in preset paper."""

    batch: int = 64
    epochs: int = 60
    guest_rule: Rule = Sgd(1e-2, momentum=0.5)  # printed
    host_rule: Rule = Adam(1e-3, weight_decay=1e-6)  # open in print; it stands in disabled text of the paper's source
    schedule: Schedule = "constant"  # of both learning rates
    dropout: float = 0.0  # of single dimensions of the guests' encodings at the host
    guest_dropout: float = 0.0  # party-wise: a guest's encoding is zero at the host, row by row
    guest_noise: float = 0.0  # part of a guest's input values that it does not see in a round
    copies: int = 0  # altered copies of each labelled row that are trained on beside the row itself
    smoothing: float = 0.0  # part of a label that the host spreads over all classes
    validation: float = 0.1  # part of the training rows held out for early stopping; 0 switches it off
    patience: int = 20  # epochs without improvement on the held-out rows
    retries: int = 0  # how often splitnn-wait asks again for a message before it gives up
    gradient_noise: float = 0.0  # length of the noise on the gradients sent back, as a share of their own mean length
    gradient_defence: Defence = "none"  # what else the host does to them: hide rows' lengths, or send signs alone
    inflated: int | None = None  # number, from 0, of a guest that learns faster, to make its encodings tell labels
    inflation: float = 1.0  # its learning rate, times the others'
    w_g: int | None = None  # width of all guests' encodings together; None: the sizing rule's
    w_h: int | None = None  # width of the host's second layer; None: the sizing rule's
    head: tuple[int, ...] | None = None  # hidden widths of the host's network; None: the sizing rule's


@dataclass(frozen=True)
class FedVSSettings(SplitSettings):
    """One training of FedVS. None: what the number of guests allows (strategies/fedvs/fedvs.py)."""

    segments: int = 1  # K: rows that are coded together
    colluders: int = 1  # T: guests that may put their shares together and learn nothing
    stragglers: int | None = None  # L: guests whose results may be missing in a round; None: as many as can be
    squares: int | None = None  # square activations inside the code; None: 1 with six guests or more, else 0
    data_bits: int = 6  # binary places of the guests' columns
    weight_bits: int = 12  # and of their weights


AnySettings = Settings | SplitSettings
Given = TypeVar("Given", Settings, SplitSettings)


def variants(settings: Given | Sequence[Given], replicas: int, varying: Callable[[Given], Given]) -> tuple[Given, ...]:
    """One each. Replicas of a stack may differ in what `varying` makes equal: some rates and dropouts."""
    each = (settings,) * replicas if isinstance(settings, _Plain) else tuple(settings)
    if len(each) != replicas:
        raise ValueError(f"{len(each)} settings for {replicas} replicas; one each is right")
    if len({varying(one) for one in set(each)}) > 1:
        raise ValueError("settings that differ in more than rates and dropout cannot share a stack")
    return each
