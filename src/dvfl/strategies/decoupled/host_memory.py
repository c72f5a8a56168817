"""What hosts hold of the guests' messages: one interface to batch registers and to row registers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.memory.replay import Numbers
from dvfl.simulation.rounds import Feed, Round

Mask = NDArray[np.bool_]


class Part(NamedTuple):
    """Some rounds of a host epoch."""

    epoch: int
    rounds: slice


@dataclass(frozen=True)
class Inputs:
    """What hosts train on in some rounds."""

    feeds: dict[str, NDArray[np.generic]]  # what a reader needs to know, an entry a round
    present: Mask  # guests that were heard at all: (rounds, replicas, hosts, guests), or what broadcasts to that
    learns: Mask | None = None  # (replicas, hosts) with anything to learn from; None: all of which somebody is present
    kind: tuple[int, ...] = ()  # readers differ by kind


class Holding(Protocol):
    """The registers of all hosts of all replicas."""

    written: int  # batches pushed so far; the newest has number written - 1

    def make_room(self, count: int) -> Numbers:
        """Numbers for the next `count` batches, which the stores have places for from here on."""

    def receive(self, sent: Numbers, rows: NDArray[np.int32], up: Mask | None, part: Part | None) -> Inputs | None:
        """Takes what guests sent in rounds; what hosts train on in them, which are `part` of an epoch, if they do.

        `sent` (rounds, replicas, hosts, guests) holds batch numbers, NEVER where a message was lost; `rows` (rounds,
        replicas, batch) is what the batches are made of; `up` (rounds, replicas, hosts) is None where no host fails.
        """

    def recall(self, part: Part) -> Inputs:
        """What hosts train on in an epoch once the guests are done."""

    def reader(self, feed: Feed, elements: slice, kind: tuple[int, ...]) -> Callable[[Round], Tensor]:
        """Reads the inputs `b` (hosts, batch, W_g) of a round, for some of replicas x hosts."""

    def release(self) -> None:
        """Gives the memory back: no host trains any more."""

    def state(self) -> dict[str, Tensor]: ...
    def restore(self, state: dict[str, Tensor]) -> None: ...
