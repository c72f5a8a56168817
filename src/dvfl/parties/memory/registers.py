"""Communication registers `B[guest, host]`: one writer, one reader, the newest batch wins."""

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value")


class Stamp(NamedTuple):
    """When a guest made a message; compared field by field, so a restarted guest outranks all it ever sent."""

    incarnation: int
    epoch: int
    iteration: int


class Register(Generic[Value]):
    """What one guest last wrote to one host. Late, repeated and reordered messages need no special case."""

    def __init__(self) -> None:
        self.stamp: Stamp | None = None
        self._value: Value | None = None

    def write(self, stamp: Stamp, value: Value) -> bool:
        """Takes the message if it is newer than what is held; says whether it did."""
        if self.stamp is not None and stamp <= self.stamp:
            return False
        self.stamp, self._value = stamp, value
        return True

    def read(self) -> Value | None:
        """The newest message, however stale; None before the first."""
        return self._value


NEVER = -1  # the round number of a register that was never written


def held(arrived: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Many registers over many rounds at once: the round number of the message that each holds after each round.

    `arrived` (rounds, ..) is the newest round number that came in during a round, NEVER where nothing came;
    `before` (..) is what the registers held at the start. This is `Register.write` for a guest that never restarts.
    """
    start = np.broadcast_to(before, arrived.shape[1:])[None]
    return np.maximum.accumulate(np.concatenate([start, arrived]), axis=0)[1:]
