"""What a host knows of its guests, while it learns and once it is frozen."""

from dataclasses import dataclass, field
from typing import Any

UNTOLD: dict[str, Any] = {  # of a guest that has not said hello
    "state": "never heard",
    "loss": None,
    "restarts": 0,
    "resumed_from_epoch": 0,
    "messages_sent": 0,
    "messages_received": 0,
    "messages_dropped": 0,
    "longest_wait_s": 0.0,
    "bytes_sent": 0,
    "bytes_received": 0,
}


@dataclass
class GuestKnown:
    """What a host knows of a guest; all of it is in the checkpoint."""

    lineage: int = 0
    incarnation: int = 0
    epoch: int = 0  # the position of the newest message
    iteration: int = 0
    stream: str = ""  # identity of the stream it was read from, and how far
    sequence: int = 0
    refill: bool = False  # its slots were lost here
    arrived_ms: int = 0  # when its last message came
    sweep: str = ""  # hash of the encoder whose sweep comes or has come
    origin: str = ""  # which weights and tables that sweep is made from
    final: bool = False  # that of a trained guest; others only refill
    parts: int = 0  # of that sweep
    swept: set[int] = field(default_factory=set)  # parts that have come
    swept_by: int = 0  # the incarnation they came from
    told: dict[str, Any] = field(default_factory=dict)  # what its last hello said of itself

    @property
    def whole(self) -> bool:
        """Whether all of its final sweep is here."""
        return self.final and len(self.swept) == self.parts

    def pin(self) -> "Pinned":
        """As it is when its host freezes."""
        origin = self.origin if self.whole else ""
        return Pinned(self.lineage, self.sweep, self.arrived_ms, origin, self.swept_by)


@dataclass(frozen=True)
class Pinned:
    """A guest whose encodings are in a frozen host's."""

    lineage: int
    encoder: str  # hash; empty where no sweep had begun
    arrived_ms: int  # when its last message came
    origin: str  # which weights and tables its sweep was made from; empty where it is not whole
    swept_by: int  # the incarnation that sent it
