"""Phase 1, guests: each trains its encoder on its own rows and pushes encodings one way."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.guest import FittedGuest, Guest
from dvfl.parties.numerics.randomness import batches, numpy_generator
from dvfl.parties.numerics.schedules import rates
from dvfl.parties.objectives.augmentation import Augmentation, image_copies, table_copies
from dvfl.simulation.cpu_threads import workers
from dvfl.simulation.dropout import Dropout
from dvfl.simulation.pattern_draws import Picks
from dvfl.simulation.replica_data import ReplicaData
from dvfl.simulation.rounds import Feed, Round, Rounds, Stopwatch, cut
from dvfl.simulation.stack import GuestGroup, Stack
from dvfl.simulation.stack_faults import chains, check_progress
from dvfl.simulation.training_rows import GatheredTables
from dvfl.simulation.wrong_encodings import Spoiler, WrongEncodings
from dvfl.strategies.decoupled.host_phase import HostPhase
from dvfl.strategies.decoupled.released_batches import check_epoch_fits, release_batches


class GuestPhase:
    """The guests of all replicas with their training rows."""

    def __init__(
        self,
        stack: Stack,
        tables: ReplicaData,
        hosts: HostPhase,
        faults: Sequence[Faults],
        watch: Stopwatch,
    ) -> None:
        self.stack, self._settings, self._hosts, self._watch = stack, stack.settings, hosts, watch
        data = tables.first
        self.rows = data.rows
        counts = [len(guest.train) for guest in data.guests]
        self._counts = None if len(set(counts)) == 1 else counts  # of each guest's rows, where they differ
        self.iterations = -(-self.rows // self._settings.batch)
        if hosts.wanted:
            check_epoch_fits(stack, self.iterations, hosts.rounds_at_once)
        self.epoch = 0  # epochs done
        self.losses: list[Tensor] = []  # (replicas, guests) an epoch
        device = stack.device
        own = tables.train()
        self._tables = [self._table(group, [own[guest] for guest in group.members]) for group in stack.groups]
        self._sums = [torch.zeros(stack.replicas * len(group.members), device=device) for group in stack.groups]
        names = [guest.name for guest in data.guests]
        self.chains = chains("guest", faults, stack.seeds, names)
        self._feed = Feed(device, self.iterations)
        self._wrong = [
            WrongEncodings("hosts", faults, [names[guest] for guest in group.members], group.latent, device)
            for group in stack.groups
        ]
        self._spoiler = Spoiler(self._feed, self._settings.batch, stack.latents, device) if any(self._wrong) else None
        keep = [1 - self._settings.guest_noise] * stack.replicas
        self._noise = [
            Dropout(
                f"guest-noise-{number}", data.guests[group.members[0]].columns, keep, stack.seeds, self._feed, device
            )
            for number, group in enumerate(stack.groups)
            if self._settings.guest_noise
        ]
        self._copies = {
            number: self._altering(number, group, data)
            for number, group in enumerate(stack.groups)
            if isinstance(group.guest, Guest) and group.guest.objective.copies > 1
        }
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
        orders = {seed: self._order(seed) for seed in set(self.stack.seeds)}
        order = np.stack([orders[seed] for seed in self.stack.seeds], 1)
        start, total = epoch * self.iterations, s.guest_epochs * self.iterations
        steps = rates(s.guest_schedule, s.guest_rule.rate, start, self.iterations, total)
        for losses in self._sums:
            losses.zero_()
        chunk = min(self.iterations, self._hosts.rounds_at_once) if pushes else self.iterations
        for first in range(0, self.iterations, chunk):
            part = slice(first, first + chunk)
            self._run(start + first, order[part], steps[part], pushes, listens)
        check_progress(self.chains, "guest", self.stack.seeds)
        if listens:
            self._hosts.close_epoch()
        self.epoch += 1
        self.losses.append(self._mean_losses())

    def _run(
        self, start: int, order: NDArray[np.int32], steps: NDArray[np.float32], pushes: bool, listens: bool
    ) -> None:
        """Some rounds of the guests from round `start` on, and the hosts' rounds on what was pushed in them."""
        count, feed = len(order), self._feed
        feed.load("rows", order)
        feed.load("rate", steps)
        alive = self.chains.draw(start, count) if self.chains else None
        if alive is not None:
            feed.load("alive", alive)
        if self._spoiler is not None:
            self._spoiler.load(start + np.arange(count))
        first = start - self.epoch * self.iterations
        part = slice(first, first + count)
        for noise in self._noise:
            noise.load(self.epoch, self.iterations, self._settings.batch, part)
        for _, picks in self._copies.values():
            picks.load(self.epoch, self.iterations, 2 * self._settings.batch, part)
        numbers = self._hosts.make_room(count) if pushes else None
        if numbers is not None:
            feed.load("place", numbers % self._hosts.capacity)
        self._watch.time("guests", lambda: self._rounds[pushes].run(count))
        if numbers is not None and self._settings.alters:
            places = numbers % self._hosts.capacity
            release = partial(release_batches, self.stack, self._hosts.stores, places, order, self.epoch)
            self._watch.time("guests", release)
        if numbers is not None:
            self._hosts.receive(start, numbers, order, alive, listens)

    def _order(self, seed: int) -> NDArray[np.int32]:
        """An epoch's rows: (rounds, batch), or (rounds, guests, batch) where guests have different numbers of them.

        A guest with fewer rows than another goes through its own once, and through some drawn anew in every epoch
        again: row i of all guests still falls into the same round.
        """
        order = batches(self.rows, self._settings.batch, seed, "rows", self.epoch)
        if self._counts is None:
            return order
        rows = []
        for guest, count in enumerate(self._counts):
            again = numpy_generator(seed, "rows again", guest, self.epoch).permutation(count)
            rows.append(np.concatenate([np.arange(count), np.resize(again, self.rows - count)]).astype(np.int32))
        return np.stack([own[order] for own in rows], 1)

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
        wrong = self._wrong[number].elements(elements)
        element = torch.arange(self.stack.replicas * len(group.members), device=device)[elements]
        replica, member = element // len(group.members), element % len(group.members)
        altering = self._copies[number][0].of(member) if number in self._copies else None

        def body(t: Round) -> None:
            if self._counts is None:
                code = table.take(feed.at("rows", t), elements)
            else:
                code = table.take_own(feed.at("rows", t).flatten(0, 1).index_select(0, mine), elements)
            if isinstance(guest, Guest):
                alive = feed.at("alive", t).flatten().index_select(0, mine) if self.chains else None
                seen = None
                if altering is not None:
                    seen = altering.copies(code, self._copies[number][1].at(t, replica, member))
                elif self._noise:
                    seen = code * self._noise[number].at(t, replica, member)
                code, loss = guest.step(code, feed.at("rate", t), alive, seen)
                sums.add_(loss)
            if push and wrong and self._spoiler is not None:
                code = code.clone() if isinstance(guest, FittedGuest) else code
                self._wrong[number].spoil(code, wrong, *self._spoiler.at(t, group.latent))
            if push:
                self._hosts.stores[number].write(feed.at("place", t), code, elements)

        return body

    def _table(self, group: GuestGroup, tables: list[Tensor]) -> GatheredTables:
        if isinstance(group.guest, FittedGuest):  # nothing is trained: its encodings are all it ever needs
            tables = [group.guest.encode(tables[0])]
        return GatheredTables(tables, self.stack.replicas, self.stack.device)

    def _altering(self, number: int, group: GuestGroup, data: VerticalData) -> tuple[Augmentation, Picks]:
        """How the copies that a group's guests compare are made: as images, where all have such."""
        tables = [data.guests[guest] for guest in group.members]
        strips = [table.image for table in tables if table.image is not None]
        device = self.stack.device
        picks = Picks(f"guest-copies-{number}", self.stack.seeds, self._feed, device)
        if len(strips) == len(tables):
            return image_copies(strips, device), picks
        return table_copies(tables[0].columns, self._settings.batch, device), picks

    def _mean_losses(self) -> Tensor:
        losses = torch.zeros(self.stack.replicas, len(self.stack.latents), device=self.stack.device)
        for group, total in zip(self.stack.groups, self._sums, strict=True):
            losses[:, list(group.members)] = total.view(self.stack.replicas, -1) / self.iterations
        return losses
