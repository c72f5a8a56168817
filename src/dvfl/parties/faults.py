"""Crash faults: up/down chains of connections, guests and hosts, drawn from keyed randomness.

A live one dies with R_d and a dead one rejoins with R_u; the draw precedes the request, and the new state decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from dvfl.errors import UserError, nearest
from dvfl.parties.randomness import numpy_generator

Kind = Literal["connection", "guest", "host"]


@dataclass(frozen=True)
class Fault:
    """One kind of fault with its rates."""

    kind: Kind
    down: float  # R_d: a live one dies before its next request
    up: float  # R_u: a dead one rejoins before its next request

    def __str__(self) -> str:
        return f"{self.kind}:{self.down:g}:{self.up:g}"

    @staticmethod
    def parse(text: str) -> "Fault":
        """`connection:0.3:0.1` as R_d = 0.3, R_u = 0.1."""
        parts = text.split(":")
        if len(parts) != 3:
            raise UserError(f"--faults {text}: KIND:R_d:R_u is right, for example connection:0.3:0.1")
        if parts[0] not in get_args(Kind):
            raise UserError(f"--faults {text}: unknown kind '{parts[0]}'{nearest(parts[0], get_args(Kind))}")
        try:
            down, up = float(parts[1]), float(parts[2])
        except ValueError:
            raise UserError(f"--faults {text}: R_d and R_u are numbers from 0 to 1") from None
        if not (0 <= down <= 1 and 0 <= up <= 1):
            raise UserError(f"--faults {text}: R_d and R_u lie between 0 and 1")
        return Fault(cast(Kind, parts[0]), down, up)


class Chains:
    """The up/down chains of all entities of one kind in all replicas; they start alive."""

    def __init__(self, fault: Fault, seeds: Sequence[int], entities: Sequence[str]) -> None:
        self.fault = fault
        self._generators = [[numpy_generator(seed, fault.kind, entity) for entity in entities] for seed in seeds]
        self._alive = np.ones((len(seeds), len(entities)), bool)
        self.drawn = 0  # requests so far

    def draw(self, requests: int) -> NDArray[np.bool_]:
        """Whether each is alive at each of the next requests: (requests, replicas, entities)."""
        luck = np.stack([np.stack([g.random(requests, np.float32) for g in row], -1) for row in self._generators], 1)
        dies, rejoins = luck < self.fault.down, luck < self.fault.up
        states = np.empty(luck.shape, bool)
        alive = self._alive
        for request in range(requests):
            alive = np.where(alive, ~dies[request], rejoins[request])
            states[request] = alive
        self._alive = alive
        self.drawn += requests
        return states
