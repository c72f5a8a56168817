"""Phase 1, guests: each trains its encoder on its own rows and pushes encodings one way."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.vertical import VerticalData
from dvfl.parties.faults import Chains, Fault
from dvfl.parties.guest import FittedGuest, Guest
from dvfl.parties.randomness import batches
from dvfl.strategies.aggregation import HostPhase
from dvfl.strategies.machine import workers
from dvfl.strategies.rounds import Feed, Round, Rounds, Stopwatch, cut, rates
from dvfl.strategies.stack import GuestGroup, Stack


class GuestPhase:
    """The guests of all replicas with their training rows."""

    def __init__(
        self,
        stack: Stack,
        data: VerticalData,
        hosts: HostPhase,
        faults: Sequence[Fault],
        watch: Stopwatch,
    ) -> None:
        self.stack, self._settings, self._hosts, self._watch = stack, stack.settings, hosts, watch
        self.rows = data.rows
        self.iterations = -(-self.rows // self._settings.batch)
        self.epoch = 0  # epochs done
        self.losses: list[Tensor] = []  # (replicas, guests) an epoch
        device = stack.device
        self._tables = [_Table(stack, group, data) for group in stack.groups]
        self._sums = [torch.zeros(stack.replicas * len(group.members), device=device) for group in stack.groups]
        crashes = [fault for fault in faults if fault.kind == "guest"]
        self.chains = [Chains(fault, stack.seeds, [guest.name for guest in data.guests]) for fault in crashes]
        self._feed = Feed(device, self.iterations)
        trained = sum(
            group.guest.learner.parameters.numel() for group in stack.groups if isinstance(group.guest, Guest)
        )
        worth = workers(device, self._settings.batch * trained)
        self._rounds = {push: Rounds(self._parts(push, worth), device, worth) for push in (False, True)}

    @property
    def finished(self) -> bool:
        return self.epoch >= self._settings.guest_epochs

    def advance(self) -> None:
        """One guest epoch; in a communication epoch, the hosts' epoch on its messages as well."""
        s, epoch = self._settings, self.epoch
        pushes = (epoch + 1) % s.period == 0 and self._hosts.wanted
        # With fewer host epochs than communicated ones, the hosts take the last: those from the best guests.
        listens = pushes and s.communicated - (epoch + 1) // s.period < s.host_epochs
        order = np.stack([batches(self.rows, s.batch, seed, "rows", epoch) for seed in self.stack.seeds], 1)
        start, total = epoch * self.iterations, s.guest_epochs * self.iterations
        steps = rates(s.guest_schedule, s.guest_rule.rate, start, self.iterations, total)
        for losses in self._sums:
            losses.zero_()
        chunk = min(self.iterations, self._hosts.capacity) if pushes else self.iterations
        for first in range(0, self.iterations, chunk):
            part = slice(first, first + chunk)
            self._run(order[part], steps[part], pushes, listens)
        if listens:
            self._hosts.close_epoch()
        self.epoch += 1
        self.losses.append(self._mean_losses())

    def _run(self, order: NDArray[np.int32], steps: NDArray[np.float32], pushes: bool, listens: bool) -> None:
        """Some rounds of the guests, and the hosts' rounds on what was pushed in them."""
        count, feed = len(order), self._feed
        feed.load("rows", order)
        feed.load("rate", steps)
        alive = None
        for chains in self.chains:
            states = chains.draw(count)
            alive = states if alive is None else alive & states
        if alive is not None:
            feed.load("alive", alive)
        numbers = self._hosts.make_room(count) if pushes else None
        if numbers is not None:
            feed.load("place", numbers % self._hosts.capacity)
        self._watch.time("guests", lambda: self._rounds[pushes].run(count))
        if numbers is not None:
            self._hosts.receive(numbers, alive, listens)

    def _parts(self, push: bool, worth: int) -> list[Callable[[Round], None]]:
        """What the guests do in a round; each group on its own, large ones in several pieces."""
        parts = []
        for number, group in enumerate(self.stack.groups):
            pieces = 1 if isinstance(group.guest, FittedGuest) else worth
            for elements in cut(self.stack.replicas * len(group.members), pieces):
                parts.append(self._part(number, elements, push))
        return parts

    def _part(self, number: int, elements: slice, push: bool) -> Callable[[Round], None]:
        group, table, feed = self.stack.groups[number], self._tables[number], self._feed
        guest = group.guest if isinstance(group.guest, FittedGuest) else group.guest.part(elements)
        sums, device = self._sums[number][elements], self.stack.device
        everyone = torch.arange(self.stack.replicas * len(self.stack.latents), device=device)
        mine = group.of(everyone.view(self.stack.replicas, -1), 1).flatten()[elements]  # of replicas x all guests

        def body(t: Round) -> None:
            code = table.take(feed.at("rows", t), elements)
            if isinstance(guest, Guest):
                alive = feed.at("alive", t).flatten().index_select(0, mine) if self.chains else None
                code, loss = guest.step(code, feed.at("rate", t), alive)
                sums.add_(loss)
            if push:
                self._hosts.stores[number].write(feed.at("place", t), code, elements)

        return body

    def _mean_losses(self) -> Tensor:
        losses = torch.zeros(self.stack.replicas, len(self.stack.latents), device=self.stack.device)
        for group, total in zip(self.stack.groups, self._sums, strict=True):
            losses[:, list(group.members)] = total.view(self.stack.replicas, -1) / self.iterations
        return losses


class _Table:
    """The training rows of a group's guests, where a round can gather its batches at one stroke."""

    def __init__(self, stack: Stack, group: GuestGroup, data: VerticalData) -> None:
        tables = [torch.from_numpy(data.guests[guest].train) for guest in group.members]
        if isinstance(group.guest, FittedGuest):  # nothing is trained: its encodings are all it ever needs
            tables = [group.guest.encode(tables[0])]
        self._values = torch.cat(tables).to(stack.device)  # (members x rows, columns)
        self._columns = tables[0].shape[1]
        element = torch.arange(stack.replicas * len(tables), device=stack.device)
        self._replica = element // len(tables)  # of each element of the stack
        self._first_row = (element % len(tables) * data.rows)[:, None]

    def take(self, rows: Tensor, elements: slice) -> Tensor:
        """Rows (replicas, batch) of some of the stack's elements: (elements, batch, columns)."""
        flat = (rows.index_select(0, self._replica[elements]) + self._first_row[elements]).flatten()
        return self._values.index_select(0, flat).view(-1, rows.shape[1], self._columns)
