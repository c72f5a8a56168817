"""What the tests of hosts share: a small stack of them, faults that are written down, and what they were given."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.faults.fault_set import NO_FAULTS, Faults
from dvfl.parties.host import Host
from dvfl.settings.training import Settings
from dvfl.simulation.rounds import Stopwatch
from dvfl.simulation.stack import Shape, Stack
from dvfl.strategies.decoupled.host_phase import HostPhase

REPLICAS, HOSTS, GUESTS = 2, 2, 3
EPOCHS, ITERATIONS, REPLAYED = 3, 3, 2
COLUMNS, LATENTS = (3, 2, 3), (3, 2, 3)  # guests 1 and 3 are alike and form one group
ROWS, BATCH, W_G = 5, 2, 8  # the last batch of an epoch takes the first row again
NAMES = [f"guest-{number + 1}" for number in range(GUESTS)]
ROUND_BYTES = BATCH * W_G * 4
CPU = torch.device("cpu")
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
NO_ROWS = np.zeros((REPLICAS, BATCH), np.int32)  # batch registers do not care what a batch is made of
LIVE = st.none() | st.sampled_from([0.0, 0.2, 0.5, 0.9])  # the share of rounds in which somebody lives; None: no faults


class Script:
    """Fault chains whose states are written down beforehand, round by round."""

    def __init__(self, states: Bools) -> None:
        self.states, self.drawn = states, 0

    def draw(self, start: int, count: int) -> Bools:
        assert start == self.drawn, "rounds are asked about one after the other"
        self.drawn += count
        return self.states[start : start + count]

    def lost_for_good(self) -> Bools:
        return np.zeros(REPLICAS, bool)


def phase(capacity: int, replayed: int = REPLAYED, faults: Faults = NO_FAULTS, **options: Any) -> HostPhase:
    options = {"history_bytes": capacity * ROUND_BYTES, "history_dtype": "float32", "replay": "in order"} | options
    chosen = Settings(
        hosts=HOSTS, batch=BATCH, guest_epochs=EPOCHS, host_epochs=EPOCHS + replayed, owner_epochs=1, **options
    )
    stack = Stack(Shape(COLUMNS, (False,) * GUESTS, "table", 2), chosen, range(REPLICAS), CPU)
    assert stack.latents == LATENTS
    return HostPhase(stack, NAMES, ROWS, [faults] * REPLICAS, Stopwatch(CPU))


def value(number: int, replica: int, guest: int) -> float:
    """What a guest pushed: it tells who made it and when."""
    return number * 100 + replica * 10 + guest + 1


def push(hosts: HostPhase, number: int, rows: Ints = NO_ROWS) -> None:
    """All guests push a batch, made of rows (replicas, batch)."""
    for group, store in zip(hosts.stack.groups, hosts.stores, strict=True):
        elements = [
            [value(number, replica, guest) + 0.1 * row for row in rows[replica].tolist()]
            for replica in range(REPLICAS)
            for guest in group.members
        ]
        code = torch.tensor(elements)[:, :, None].expand(-1, -1, group.latent)
        store.write(torch.tensor(number % hosts.capacity), code)


@dataclass
class Heard:
    """What the hosts were given to train on, round by round."""

    rounds: list[tuple[Tensor, Tensor | None, Tensor | None]] = field(default_factory=list)

    def listen(self, hosts: HostPhase, monkeypatch: pytest.MonkeyPatch) -> None:
        def step(b: Tensor, rate: Tensor, *, present: Tensor | None, alive: Tensor | None, **_: Any) -> Tensor:
            self.rounds.append((b.clone(), present, alive))
            return torch.zeros(len(b))

        assert isinstance(hosts.stack.host, Host)
        monkeypatch.setattr(hosts.stack.host, "step", step)

    def next(self, replica: int, host: int) -> list[float | None] | None:
        """What one host read in the oldest round not yet taken: a value a guest, None for absent ones; None if down."""
        b, present, alive = self.rounds[0]
        element = replica * HOSTS + host
        if alive is not None and not alive[element]:
            return None
        values: list[float | None] = []
        for guest, block in enumerate(b[element].split(LATENTS, -1)):
            if present is not None and not present[element, :, guest].all():
                assert not present[element, :, guest].any()
                values.append(None)
            else:
                assert (block == block.flatten()[0]).all()
                values.append(float(block.flatten()[0]))
        return values

    def done(self) -> None:
        self.rounds.pop(0)


def states(rng: np.random.Generator, live: float | None, *shape: int) -> Bools | None:
    return None if live is None else rng.random(shape) < live
