"""A real host's network and the row registers it learns from."""

import hashlib
from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.federation.party.storage import Storage
from dvfl.federation.protocol.plan import Plan
from dvfl.federation.protocol.wire import BadMessage, Encodings
from dvfl.parties.host import ConcatenatingHost, Host
from dvfl.parties.memory.row_registers import HostTable, RowRegister
from dvfl.parties.numerics.randomness import PATTERNS, numpy_generator, torch_generator
from dvfl.parties.numerics.schedules import rates
from dvfl.parties.objectives.augmentation import TableCopies, table_copies
from dvfl.parties.objectives.objective import temperature_of
from dvfl.parties.party_networks import host_objective
from dvfl.parties.pass_masks import left, shown

CHUNK = 512_000  # bytes of encodings in one answer to the owner, at most


class HostTraining:
    """The network that the plan gives a host, and the tables it learns from."""

    def __init__(self, name: str, plan: Plan, storage: Storage, *, fresh: bool) -> None:
        self._plan, self._name = plan, name
        latents, number = plan.sizes.guest_latent, plan.hosts.index(name)
        self.host = _host(plan, number)
        self.torn: list[str] = []  # guests whose table did not outlive the last process
        registers = []
        for guest, latent in zip(plan.guests, latents, strict=True):
            arrays, whole = storage.table(guest.name, plan.all_slots, latent)
            if not whole and not fresh:
                self.torn.append(guest.name)
            registers.append(RowRegister(*arrays, train=plan.slots))
            if fresh:
                registers[-1].void()
        self.table = HostTable(registers)
        self._numbers = {guest.name: number for number, guest in enumerate(plan.guests)}
        self._rows = max(1, CHUNK // (4 * plan.host_width + len(latents)))

    def register(self, guest: str) -> RowRegister:
        return self.table.registers[self._numbers[guest]]

    def check(self, guest: str, message: Encodings) -> None:
        """Refuses what does not fit the guest's table."""
        number = self._numbers[guest]
        if message.values.shape[1] != self._plan.sizes.guest_latent[number]:
            raise BadMessage("encodings of another width")
        if message.slots.max() >= self._plan.all_slots:
            raise BadMessage("slots beyond the plan's")

    @torch.no_grad()
    def steps(self, first: int, count: int) -> float:
        """Trains from step `first` on; the mean loss."""
        plan, host = self._plan, self.host
        assert isinstance(host, Host)
        rate = rates(plan.host_schedule, plan.host_rule.rate, first, count, plan.host_steps)
        total = 0.0
        for number in range(count):
            draw = numpy_generator(plan.seed, "host draws", self._name, first + number)
            b, present = self.table.draw(plan.batch, draw)
            dropped = None
            if plan.guest_dropout:
                marks = draw.random(present.shape) < plan.guest_dropout
                marks &= ~marks.all(2, keepdims=True)  # a row keeps somebody
                dropped = torch.from_numpy(marks)
            heard = None if present.all() else torch.from_numpy(present)
            x, copies = torch.from_numpy(b), None
            if host.objective.copies > 1:
                picks = torch.from_numpy(draw.integers(PATTERNS, size=(1, 2 * plan.batch)))
                copies = self._copies.copies(x, picks, None if heard is None else host.absence.columns(heard))
            loss = host.step(x, float(rate[number]), present=heard, dropped=dropped, copies=copies)
            total += float(loss)
        return total / count

    @cached_property
    def _copies(self) -> TableCopies:
        return table_copies(sum(self._plan.sizes.guest_latent), self._plan.batch, torch.device("cpu"))

    @property
    def chunks(self) -> int:
        return -(-self._plan.all_slots // self._rows)

    def chunk(
        self, number: int, counted: Collection[str], pass_number: int
    ) -> tuple[int, NDArray[np.float32], NDArray[np.uint8]]:
        """First slot, encodings (slots, W_h), and who of those that count is in them (slots, guests).

        A pass from 1 on hides some of them, but nobody in a row that would be left with none.
        """
        first = number * self._rows
        slots = np.arange(first, min(self._plan.all_slots, first + self._rows), dtype=np.int32)
        b, present = self.table.inputs(slots)
        present &= np.array([name in counted for name in self._numbers])
        if pass_number:
            seen = shown(self._plan.seed, pass_number, slots, len(self._numbers), self._plan.guest_dropout)
            present = left(seen, present)
        return first, self.encoded(b, present), present[0].astype(np.uint8)

    def encoded(self, b: NDArray[np.float32], present: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Encodings (rows, W_h) of inputs (1, rows, W_g), guests that are not present (1, rows, guests) left out."""
        heard = None if present.all() else torch.from_numpy(present)
        codes: NDArray[np.float32] = self.host.encode(torch.from_numpy(b), heard)[0].numpy()
        return codes

    def hash(self, made_of: Any) -> str:
        """Of its weights and what its tables are made of: which model makes its encodings."""
        weights = self.host.learner.parameters.numpy().tobytes() if isinstance(self.host, Host) else b""
        return hashlib.sha256(weights + repr(made_of).encode()).hexdigest()

    def state(self) -> dict[str, Tensor]:
        """What a restart needs beside the tables."""
        return self.host.learner.state() if isinstance(self.host, Host) else {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        if isinstance(self.host, Host):
            self.host.learner.restore(state)


def _host(plan: Plan, number: int) -> Host | ConcatenatingHost:
    latents = plan.sizes.guest_latent
    if plan.host_model == "concatenate":
        return ConcatenatingHost(latents, torch.device("cpu"))
    objective = host_objective(
        plan.sizes, sum(latents), temperature=temperature_of(plan.host_objective, plan.temperature)
    )
    parameters = Host.init(objective, latents, torch_generator(plan.seed, "host", number))[None]
    return Host(objective, latents, parameters, plan.host_rule)
