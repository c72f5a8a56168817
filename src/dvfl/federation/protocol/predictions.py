"""What a prediction is and what it rests on, for everything that makes, shows or sends one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Freshness = Literal["fresh", "cached", "absent"]


@dataclass(frozen=True)
class GuestPart:
    """A guest's part in one prediction: the best that any host which answered had of it."""

    state: Freshness
    age_s: float | None = None  # of its encoding; None where it is absent
    suspected: bool = False  # left out because what it sent looked corrupt


@dataclass(frozen=True)
class Prediction:
    """The answer for one id."""

    id: str
    known: bool  # whether the owner has a slot for it; nothing else is there for one it has not
    label: str | None = None  # the likeliest class; of a regression None
    value: float | None = None  # of a regression
    probabilities: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None
    degraded: bool = True  # anything but all guests fresh at every host
    guests: dict[str, GuestPart] = field(default_factory=dict)
    hosts: dict[str, bool] = field(default_factory=dict)  # whether each answered in time

    @property
    def answered(self) -> bool:
        """Whether there is anything to rest on: a known id, a host that answered and a guest that is not absent."""
        return self.label is not None or self.value is not None


class NotReady(Exception):
    """The head is not trained yet; the text says how far the run is."""


class Predictor(Protocol):
    """Who can be asked."""

    @property
    def guests(self) -> tuple[str, ...]: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[str, ...] | None:
        """None: a regression."""

    async def predict(self, ids: Sequence[str], deadline_s: float) -> list[Prediction]:
        """One answer for each id, in order, within the deadline; raises NotReady before training has finished."""

    def status(self) -> dict[str, Any]:
        """The federation as the owner sees it, as `GET /v1/status` gives it."""
