"""Phase 1, hosts: training on what their registers hold of the guests' messages, fresh or stale.

What that is depends on the faults alone, so it is worked out for a whole epoch ahead; the rounds themselves only gather
and train.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.faults.lateness import FullPost, Lags, Post
from dvfl.parties.host import Host
from dvfl.parties.memory.registers import NEVER
from dvfl.parties.memory.replay import BatchStore, Numbers
from dvfl.parties.numerics.schedules import rates
from dvfl.parties.objectives.augmentation import TableCopies, table_copies
from dvfl.simulation.cpu_threads import workers
from dvfl.simulation.dropout import Dropout
from dvfl.simulation.pattern_draws import Picks
from dvfl.simulation.rounds import Feed, Round, Rounds, Stopwatch, cut
from dvfl.simulation.stack import Stack
from dvfl.simulation.stack_faults import chains, check_progress
from dvfl.strategies.decoupled.batch_registers import BatchRegisters
from dvfl.strategies.decoupled.host_memory import Holding, Inputs, Mask, Part
from dvfl.strategies.decoupled.row_tables import RowTables

_Copies = tuple[TableCopies, Picks]
_Variant = tuple[Feed, Dropout | None, _Copies | None, Rounds]
_DTYPES = {"float16": torch.float16, "float32": torch.float32}


class HostPhase:
    """The hosts of all replicas with their registers."""

    def __init__(
        self,
        stack: Stack,
        guests: Sequence[str],
        rows: int,
        faults: Sequence[Faults],
        watch: Stopwatch,
    ) -> None:
        self.stack, self._settings, self._watch = stack, stack.settings, watch
        self._guests, self._iterations = len(guests), -(-rows // self._settings.batch)
        self.epoch = 0  # epochs done
        self.losses: list[Tensor] = []  # (replicas, hosts) an epoch
        self.wanted = isinstance(stack.host, Host)  # hosts without parameters and absent ones need no messages to train
        hosts, by_row = self._settings.hosts, self.wanted and self._settings.registers == "row"
        names = [f"host-{number + 1}" for number in range(hosts)]
        late = [one.lateness for one in faults]
        self._longest = max((one.longest for one in late if one), default=0)
        self.capacity = self._capacity() if self.wanted else 1  # batches of a guest that are kept
        self.stores = [
            BatchStore(
                stack.replicas,
                len(group.members),
                0 if by_row else hosts,
                self._settings.batch,
                group.latent,
                self.capacity,
                _DTYPES[self._settings.history_dtype],
                stack.device,
            )
            for group in (stack.groups if self.wanted else ())
        ]
        self.holding: Holding
        if by_row:
            every = FullPost(Lags(late, stack.seeds, guests, names)) if self._longest else None
            self.holding = RowTables(stack, self.stores, self.capacity, rows, every)
        else:
            newest = Post(Lags(late, stack.seeds, guests, names)) if self._longest else None
            self.holding = BatchRegisters(stack, self.stores, self.capacity, self._iterations, newest)
        links = [f"{guest}>{host}" for host in names for guest in guests]
        self.links = chains("connection", faults, stack.seeds, links) if self.wanted else None
        self.chains = chains("host", faults, stack.seeds, names) if self.wanted else None
        self._sum = torch.zeros(stack.replicas * max(1, hosts), device=stack.device)
        self.steps = 0  # rounds of the hosts so far
        self._variants: dict[tuple[int, ...], _Variant] = {}

    @property
    def rounds_at_once(self) -> int:
        """Rounds whose batches the ring holds together with what is still on its way."""
        return self.capacity - self._longest

    @property
    def finished(self) -> bool:
        """Whether guests' messages and replay have given the hosts all their epochs."""
        return not self.wanted or self.epoch >= self._settings.host_epochs

    def make_room(self, count: int) -> Numbers:
        """Numbers for the next `count` batches, which the ring has places for from here on."""
        return self.holding.make_room(count)

    def receive(self, start: int, numbers: Numbers, rows: NDArray[np.int32], alive: Mask | None, listens: bool) -> None:
        """The hosts' part of rounds from `start` on, in which guests pushed (Algorithm 1, host lines 2 to 9).

        `rows` (rounds, replicas, batch) is what the batches are made of.
        """
        sent = self._sent(start, numbers, alive)
        check_progress(self.links, "connection", self.stack.seeds)
        up = self._up(start, len(numbers)) if listens else None
        part = self._part(len(numbers))
        inputs = self.holding.receive(sent, rows, up, part if listens else None)
        if inputs is not None:
            self._train(inputs, up, part)

    def advance(self) -> None:
        """One epoch on what the hosts hold, once the guests are done."""
        part = self._part(self._iterations)
        self._train(self.holding.recall(part), self._up(self._clock(), self._iterations), part)
        self.close_epoch()

    def close_epoch(self) -> None:
        """Takes down the epoch's mean losses."""
        self.losses.append((self._sum / self._iterations).view(self.stack.replicas, -1))
        self._sum.zero_()
        self.epoch += 1

    def release(self) -> None:
        """Gives back the memory of what was held: it has served."""
        self.stores.clear()
        self.holding.release()

    def _clock(self) -> int:
        """The round at which an epoch without guests begins: it goes on counting where they ended."""
        s = self._settings
        return (s.guest_epochs + self.epoch - s.communicated) * self._iterations

    def _part(self, count: int) -> Part:
        """The next rounds of the epoch."""
        first = self.steps - self.epoch * self._iterations
        return Part(self.epoch, slice(first, first + count))

    def _up(self, start: int, count: int) -> Mask | None:
        """Which hosts are up in rounds: (rounds, replicas, hosts)."""
        if self.chains is None:
            return None
        up = self.chains.draw(start, count)
        check_progress(self.chains, "host", self.stack.seeds)
        return up

    def _sent(self, start: int, numbers: Numbers, alive: Mask | None) -> Numbers:
        """The batch numbers of the messages that are not lost: (rounds, replicas, hosts, guests), NEVER for the others.

        A message is lost when its guest or its connection is down. Without such faults one number serves all.
        """
        sent = numbers[:, None, None, None]
        links = self.links.draw(start, len(numbers)) if self.links else None
        if links is None and alive is None and not self._longest:
            return sent
        shape = (len(numbers), self.stack.replicas, self._settings.hosts, self._guests)
        if links is not None:
            sent = np.where(links.reshape(shape), sent, NEVER)
        if alive is not None:
            sent = np.where(alive[:, :, None, :], sent, NEVER)
        return np.broadcast_to(sent, shape)

    def _train(self, inputs: Inputs, up: Mask | None, part: Part) -> None:
        """Host rounds on inputs, for the hosts that are up."""
        s, count = self._settings, part.rounds.stop - part.rounds.start
        full = (count, self.stack.replicas, s.hosts, self._guests)
        if inputs.learns is not None and not inputs.learns.all():
            up = np.broadcast_to(inputs.learns, full[:3]) if up is None else up & inputs.learns
        missing = not inputs.present.all()
        if missing:  # a host that has heard nobody has nothing to learn from
            heard: Mask = np.asarray(inputs.present.any(-1))
            up = heard if up is None else up & heard
        feed, dropout, copies, rounds = self._variant(missing, up is not None, inputs.kind)
        for name, values in inputs.feeds.items():
            feed.load(name, values)
        if missing:
            feed.load("present", np.broadcast_to(inputs.present, full))
        if up is not None:
            feed.load("up", np.broadcast_to(up, full[:3]))
        if dropout is not None:
            dropout.load(self.epoch, self._iterations, s.batch, part.rounds)
        if copies is not None:
            copies[1].load(self.epoch, self._iterations, 2 * s.batch, part.rounds)
        total = s.host_epochs * self._iterations
        feed.load("rate", rates(s.host_schedule, s.host_rule.rate, self.steps, count, total))
        self._watch.time("hosts", lambda: rounds.run(count))
        self.steps += count

    def _variant(self, missing: bool, masked: bool, kind: tuple[int, ...]) -> _Variant:
        if (missing, masked, *kind) not in self._variants:
            device = self.stack.device
            feed = Feed(device, self._iterations)
            assert isinstance(self.stack.host, Host)
            worth = workers(device, self._settings.batch * self.stack.host.learner.parameters.numel())
            pieces = cut(len(self._sum), worth)
            dropout = None
            if self._settings.guest_dropout:  # party-wise: guests are hidden from a host
                keep = [1 - self._settings.guest_dropout] * self.stack.replicas
                dropout = Dropout("guest-dropout", self._guests, keep, self.stack.seeds, feed, device).never_all()
            copies = None
            if self.stack.host.objective.copies > 1:
                augmentation = table_copies(self.stack.joint, self._settings.batch, device)
                copies = augmentation, Picks("host-copies", self.stack.seeds, feed, device)
            parts = [self._work(feed, dropout, copies, elements, missing, masked, kind) for elements in pieces]
            self._variants[missing, masked, *kind] = feed, dropout, copies, Rounds(parts, device, worth)
        return self._variants[missing, masked, *kind]

    def _work(
        self,
        feed: Feed,
        dropout: Dropout | None,
        copies: _Copies | None,
        elements: slice,
        missing: bool,
        masked: bool,
        kind: tuple[int, ...],
    ) -> Callable[[Round], None]:
        """What some of the hosts do in a round; `missing`: a guest may be unheard, `masked`: a host may be down."""
        stack = self.stack
        assert isinstance(stack.host, Host)
        host, sums = stack.host.part(elements), self._sum[elements]
        element = torch.arange(len(self._sum), device=stack.device)[elements]
        replica, number = element // self._settings.hosts, element % self._settings.hosts
        read = self.holding.reader(feed, elements, kind)

        def body(t: Round) -> None:
            b = read(t)  # (hosts, batch, W_g)
            present = None
            if missing:
                present = feed.at("present", t).flatten(0, 1)[elements][:, None].expand(-1, b.shape[1], -1)
            altered = None
            if copies is not None:
                known = None if present is None else host.absence.columns(present)
                altered = copies[0].copies(b, copies[1].at(t, replica, number), known)
            loss = host.step(
                b,
                feed.at("rate", t),
                present=present,
                dropped=None if dropout is None else ~dropout.at(t, replica, number),
                alive=feed.at("up", t).flatten()[elements] if masked else None,
                copies=altered,
            )
            sums.add_(loss)

        return body

    def _capacity(self) -> int:
        """Batches of a guest to keep: one epoch's where nothing is replayed, all within the budget otherwise."""
        s, late = self._settings, self._longest
        replayed = s.replayed and s.registers == "batch"
        wanted = self._iterations * (s.communicated if replayed else 1) + late
        size = s.batch * self.stack.joint * _DTYPES[s.history_dtype].itemsize
        if s.history_bytes is None:
            return wanted
        if s.history_bytes < size * (1 + late):
            what = f"{late} rounds of late messages take" if late else "one round of encodings alone takes"
            raise UserError(f"history_bytes {s.history_bytes}: {what} {size * (1 + late)}")
        return min(wanted, s.history_bytes // size)
