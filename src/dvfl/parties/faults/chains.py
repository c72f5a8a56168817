"""Up/down chains of crashing connections, guests and hosts.

A live one dies with R_d and a dead one rejoins with R_u; the draw precedes the request, and the new state decides.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.faults.fault_set import Fault, Faults, Kind
from dvfl.parties.faults.outages import Timetable
from dvfl.parties.numerics.randomness import numpy_generator

_BLOCK = 1024  # requests whose luck is drawn together


class Chains:
    """The up/down states of all entities of one kind in all replicas; they start alive.

    Request number n of an entity has the n-th number of that entity's own generator, whoever else is asked.
    """

    def __init__(self, kind: Kind, faults: Sequence[Faults], seeds: Sequence[int], entities: Sequence[str]) -> None:
        if len(faults) != len(seeds):
            raise ValueError(f"{len(faults)} faults for {len(seeds)} replicas; one each is right")
        crashes = [{crash.kind: crash for crash in one.crashes}.get(kind, Fault(kind, 0, 0)) for one in faults]
        self._down = np.array([[crash.down] for crash in crashes], np.float32)  # (replicas, 1), as is the luck
        self._up = np.array([[crash.up] for crash in crashes], np.float32)
        self._kind, self._seeds, self._entities = kind, list(seeds), list(entities)
        self._recorded = Timetable([one.outages for one in faults], entities)
        shape = (len(seeds), len(entities))
        self._alive = np.ones(shape, bool)
        self._drawn = np.zeros(shape, np.int64)  # requests so far
        self._round = -1  # the last that was asked about

        self._crashing = np.flatnonzero(self._down > 0)  # replicas that need luck
        self._luck = np.zeros((len(self._crashing), len(entities), _BLOCK), np.float32)
        self._generators = self._seeded()
        row = np.zeros(len(seeds), np.int64)  # the others read any luck: none kills at a rate of 0
        row[self._crashing] = np.arange(len(self._crashing))
        self._first = (row[:, None] * len(entities) + np.arange(len(entities))) * _BLOCK
        self.active = bool(len(self._crashing)) or self._recorded.active

    def request(self, t: int, asked: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Whether each is alive for a request in round t: (replicas, entities).

        Only chains that are `asked` (None: all; broadcast to replicas x entities) move on; the others keep their state.
        """
        self._round = t
        if len(self._crashing):
            self._move(asked)
        self._drawn += 1 if asked is None else asked
        return self._alive & self._recorded.up(t) if self._recorded.active else self._alive.copy()

    def draw(self, start: int, count: int) -> NDArray[np.bool_]:
        """One request to everyone in each of the rounds start .. start + count - 1: (count, replicas, entities)."""
        states = np.empty((count, *self._alive.shape), bool)
        for number in range(count):
            states[number] = self.request(start + number)
        return states

    def gone(self) -> NDArray[np.bool_]:
        """Who will never be alive again, as of the last round asked about: (replicas, entities).

        Dead by its chain where R_u is 0, or recorded as down from then on.
        """
        gone: NDArray[np.bool_] = (~self._alive & (self._up == 0)) | self._recorded.gone(self._round)
        return gone

    def lost_for_good(self) -> NDArray[np.bool_]:
        """(replicas,) where nobody of this kind will ever be alive again, as of the last round asked about."""
        gone = self.gone()
        return np.logical_and(gone.all(1), gone.any(1))  # where there is nobody, nobody is lost

    def state(self) -> dict[str, Tensor]:
        """All that luck has decided so far."""
        return {
            "drawn": torch.from_numpy(self._drawn.copy()),
            "alive": torch.from_numpy(self._alive.copy()),
            "round": torch.tensor(self._round),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Goes on from where `state` was taken, with the luck that would have come next."""
        self._drawn, self._alive = state["drawn"].numpy().copy(), state["alive"].numpy().copy()
        self._round = int(state["round"])
        self._generators = self._seeded()
        begun = -(-self._drawn[self._crashing] // _BLOCK)  # (crashing replicas, entities)
        for index, blocks in np.ndenumerate(begun):
            for _ in range(blocks):
                self._refill(*index)

    def _move(self, asked: NDArray[np.bool_] | None) -> None:
        place = self._drawn % _BLOCK
        if not place.all():
            used_up = (place == 0) if asked is None else (place == 0) & asked
            for row, entity in np.argwhere(used_up[self._crashing]):
                self._refill(row, entity)
        luck = self._luck.reshape(-1)[self._first + place]
        moved = np.where(self._alive, luck >= self._down, luck < self._up)
        self._alive = moved if asked is None else np.where(asked, moved, self._alive)

    def _refill(self, row: int, entity: int) -> None:
        self._generators[row][entity].random(dtype=np.float32, out=self._luck[row, entity])

    def _seeded(self) -> list[list[np.random.Generator]]:
        return [
            [numpy_generator(self._seeds[replica], self._kind, entity) for entity in self._entities]
            for replica in self._crashing
        ]
