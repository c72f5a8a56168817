"""The paper's registers and replay buffers, stacked: the newest batch of every guest, and a history of inputs.

Which message a register holds in which round depends on the faults alone, so it is worked out for a whole epoch ahead,
as batch numbers; the rounds themselves only gather.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.faults.lateness import Post
from dvfl.parties.memory.registers import NEVER, held
from dvfl.parties.memory.replay import BatchStore, Numbers, ReplayBuffer
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.simulation.rounds import Feed, Round
from dvfl.simulation.stack import Stack
from dvfl.strategies.decoupled.host_memory import Inputs, Mask, Part


class BatchRegisters:
    """`B` and `A` of the hosts of all replicas."""

    def __init__(
        self, stack: Stack, stores: Sequence[BatchStore], capacity: int, iterations: int, post: Post | None
    ) -> None:
        self._stack, self._stores, self._iterations, self._post = stack, stores, iterations, post
        self.registers: Numbers = np.full((1, 1, 1), NEVER)  # newest batch number held: (replicas, hosts, guests)
        self.replay = ReplayBuffer(capacity)

    @property
    def written(self) -> int:
        """Batches pushed so far."""
        return self.replay.written

    @written.setter
    def written(self, count: int) -> None:
        self.replay.written = count

    def make_room(self, count: int) -> Numbers:
        """Numbers for the next `count` batches. What a register holds and the ring will pass is copied aside first."""
        replay = self.replay
        first, oldest = replay.written, replay.oldest
        replay.written += count
        passed = (self.registers >= oldest) & (self.registers < replay.oldest)
        if passed.any():
            full = (self._stack.replicas, self._stack.settings.hosts, len(self._stack.latents))
            passed, places = np.broadcast_to(passed, full), np.broadcast_to(self.registers % replay.capacity, full)
            for group, store in zip(self._stack.groups, self._stores, strict=True):
                members = list(group.members)
                store.rescue(passed[..., members], places[..., members])
        replay.forget(self.registers)
        return first + np.arange(count)

    def receive(self, sent: Numbers, rows: NDArray[np.int32], up: Mask | None, part: Part | None) -> Inputs | None:
        """The newest batch of every guest in every round; without lost messages one number serves all hosts."""
        arrived = sent if self._post is None else self._post.deliver(sent)
        holding = held(arrived, self.registers)
        self.registers = holding[-1]
        if part is None:
            return None
        if self._stack.settings.replayed:  # otherwise an input is used once and freed
            kept = (holding != NEVER).any(-1)
            self.replay.append(holding, kept if up is None else kept & up)
        return self._inputs(holding)

    def recall(self, part: Part) -> Inputs:
        """Inputs from the history."""
        numbers, anything = self.replay.draw(self._positions(part.epoch))
        return self._inputs(numbers, anything)

    def reader(self, feed: Feed, elements: slice, kind: tuple[int, ...]) -> Callable[[Round], Tensor]:
        """Gathers batches from their places."""
        stack = self._stack
        element = torch.arange(stack.replicas * stack.settings.hosts, device=stack.device)[elements]
        replica = element // stack.settings.hosts

        def read(t: Round) -> Tensor:
            places = feed.at("places", t).flatten(0, 1)[elements]  # (hosts, guests)
            pieces = [
                store.read(group.of(places, 1), replica)
                for group, store in zip(stack.groups, self._stores, strict=True)
            ]
            return stack.join(pieces)

        return read

    def release(self) -> None:
        """The numbers take little, and the stores are their owner's."""

    def state(self) -> dict[str, Tensor]:
        """What the registers hold, the history, and what is still on its way."""
        arrays = {"registers": self.registers, "inputs": self.replay.inputs, "kept": self.replay.kept}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        return tensors | (self._post.state() if self._post else {})

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        self.registers, self.replay.inputs, self.replay.kept = (
            state[name].numpy() for name in ("registers", "inputs", "kept")
        )
        if self._post is not None:
            self._post.restore(state)

    def _inputs(self, numbers: Numbers, learns: Mask | None = None) -> Inputs:
        present = numbers != NEVER
        places = self.replay.places(np.where(present, numbers, self.replay.written - 1))
        full = (len(numbers), self._stack.replicas, self._stack.settings.hosts, len(self._stack.latents))
        return Inputs({"places": np.broadcast_to(places, full)}, present, learns)

    def _positions(self, epoch: int) -> Numbers:
        """Where an epoch's inputs lie in the histories: (iterations, replicas, hosts)."""
        s = self._stack.settings
        if s.replay == "in order":
            start = (epoch - s.communicated) * self._iterations
            return start + np.arange(self._iterations)[:, None, None]
        size = (self._iterations, s.hosts)
        draws = [numpy_generator(seed, "replay", epoch).integers(1 << 40, size=size) for seed in self._stack.seeds]
        return np.stack(draws, 1)
