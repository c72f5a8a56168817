"""Phase 1, hosts: registers, replay buffers, and training on what arrived, fresh or stale.

Which message a register holds in which round depends on the faults alone, so it is worked out for a whole epoch ahead,
as batch numbers; the rounds themselves only gather and train.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.faults import Faults
from dvfl.parties.host import Host
from dvfl.parties.lateness import Post
from dvfl.parties.randomness import numpy_generator
from dvfl.parties.registers import NEVER, held
from dvfl.parties.replay import BatchStore, Numbers, ReplayBuffer
from dvfl.parties.schedules import rates
from dvfl.strategies.dropout import Dropout
from dvfl.strategies.machine import workers
from dvfl.strategies.rounds import Feed, Round, Rounds, Stopwatch, cut
from dvfl.strategies.stack import Stack
from dvfl.strategies.trouble import chains, check_progress

_DTYPES = {"float16": torch.float16, "float32": torch.float32}


class HostPhase:
    """The hosts of all replicas with their registers and replay buffers."""

    def __init__(
        self,
        stack: Stack,
        guests: Sequence[str],
        iterations: int,
        faults: Sequence[Faults],
        watch: Stopwatch,
    ) -> None:
        self.stack, self._settings, self._watch = stack, stack.settings, watch
        self._guests, self._iterations = len(guests), iterations
        self.epoch = 0  # epochs done
        self.losses: list[Tensor] = []  # (replicas, hosts) an epoch
        self.registers: Numbers = np.full((1, 1, 1), NEVER)  # newest batch number held: (replicas, hosts, guests)
        self.wanted = isinstance(stack.host, Host)  # hosts without parameters and absent ones need no messages to train
        hosts = self._settings.hosts
        names = [f"host-{number + 1}" for number in range(hosts)]
        late = any(one.lateness for one in faults)
        self.post = Post([one.lateness for one in faults], stack.seeds, guests, names) if late else None
        self.replay = ReplayBuffer(self._capacity() if self.wanted else 1)
        self.stores = [
            BatchStore(
                stack.replicas,
                len(group.members),
                hosts,
                self._settings.batch,
                group.latent,
                self.capacity,
                _DTYPES[self._settings.history_dtype],
                stack.device,
            )
            for group in (stack.groups if self.wanted else ())
        ]
        links = [f"{guest}>{host}" for host in names for guest in guests]
        self.links = chains("connection", faults, stack.seeds, links) if self.wanted else None
        self.chains = chains("host", faults, stack.seeds, names) if self.wanted else None
        self._sum = torch.zeros(stack.replicas * max(1, hosts), device=stack.device)
        self.steps = 0  # rounds of the hosts so far
        self._variants: dict[tuple[bool, ...], tuple[Feed, Dropout | None, Rounds]] = {}

    @property
    def capacity(self) -> int:
        """Batches of a guest that are kept."""
        return self.replay.capacity

    @property
    def rounds_at_once(self) -> int:
        """Rounds whose batches the ring holds together with what is still on its way."""
        return self.capacity - (self.post.longest if self.post else 0)

    @property
    def finished(self) -> bool:
        """Whether guests' messages and replay have given the hosts all their epochs."""
        return not self.wanted or self.epoch >= self._settings.host_epochs

    def make_room(self, count: int) -> Numbers:
        """Numbers for the next `count` batches. What a register holds and the ring will pass is copied aside first."""
        replay = self.replay
        first, oldest = replay.written, replay.oldest
        replay.written += count
        passed = (self.registers >= oldest) & (self.registers < replay.oldest)
        if passed.any():
            full = (self.stack.replicas, self._settings.hosts, self._guests)
            passed, places = np.broadcast_to(passed, full), np.broadcast_to(self.registers % replay.capacity, full)
            for group, store in zip(self.stack.groups, self.stores, strict=True):
                members = list(group.members)
                store.rescue(passed[..., members], places[..., members])
        replay.forget(self.registers)
        return first + np.arange(count)

    def receive(self, start: int, numbers: Numbers, alive: NDArray[np.bool_] | None, listens: bool) -> None:
        """The hosts' part of rounds from `start` on, in which guests pushed (Algorithm 1, host lines 2 to 9)."""
        holding = self._deliver(start, numbers, alive)
        check_progress(self.links, "connection", self.stack.seeds)
        if not listens:
            return
        up = self._up(start, len(numbers))
        if self._settings.replayed:  # otherwise an input is used once and freed
            kept = (holding != NEVER).any(-1)
            self.replay.append(holding, kept if up is None else kept & up)
        self._train(holding, up)

    def advance(self) -> None:
        """One epoch on replayed inputs."""
        inputs, anything = self.replay.draw(self._positions())
        up = self._up(self._clock(), self._iterations)
        if not anything.all():
            up = np.broadcast_to(anything, inputs.shape[:3]) if up is None else up & anything
        self._train(inputs, up)
        self.close_epoch()

    def close_epoch(self) -> None:
        """Takes down the epoch's mean losses."""
        self.losses.append((self._sum / self._iterations).view(self.stack.replicas, -1))
        self._sum.zero_()
        self.epoch += 1

    def _clock(self) -> int:
        """The round at which an epoch of replay begins: it goes on counting where the guests ended."""
        s = self._settings
        return (s.guest_epochs + self.epoch - s.communicated) * self._iterations

    def _up(self, start: int, count: int) -> NDArray[np.bool_] | None:
        """Which hosts are up in rounds: (rounds, replicas, hosts)."""
        if self.chains is None:
            return None
        up = self.chains.draw(start, count)
        check_progress(self.chains, "host", self.stack.seeds)
        return up

    def _deliver(self, start: int, numbers: Numbers, alive: NDArray[np.bool_] | None) -> Numbers:
        """What each register holds in each round: batch numbers (rounds, replicas, hosts, guests).

        A message is lost when its guest or its connection is down. Without such faults one number serves all.
        """
        links = self.links.draw(start, len(numbers)) if self.links else None
        if links is None and alive is None and self.post is None:
            self.registers = np.full((1, 1, 1), numbers[-1])
            return numbers[:, None, None, None]
        shape = (len(numbers), self.stack.replicas, self._settings.hosts, self._guests)
        arrived = np.broadcast_to(numbers[:, None, None, None], shape)
        if links is not None:
            arrived = np.where(links.reshape(shape), arrived, NEVER)
        if alive is not None:
            arrived = np.where(alive[:, :, None, :], arrived, NEVER)
        if self.post is not None:
            arrived = self.post.deliver(arrived)
        holding = held(arrived, self.registers)
        self.registers = holding[-1]
        return holding

    def _positions(self) -> Numbers:
        """Where the epoch's inputs lie in the histories: (iterations, replicas, hosts)."""
        if self._settings.replay == "in order":
            start = (self.epoch - self._settings.communicated) * self._iterations
            return start + np.arange(self._iterations)[:, None, None]
        size = (self._iterations, self._settings.hosts)
        draws = [numpy_generator(seed, "replay", self.epoch).integers(1 << 40, size=size) for seed in self.stack.seeds]
        return np.stack(draws, 1)

    def _train(self, inputs: Numbers, up: NDArray[np.bool_] | None) -> None:
        """Host rounds on inputs given as batch numbers (rounds, replicas, hosts, guests), for the hosts that are up."""
        s, count = self._settings, len(inputs)
        full = (count, self.stack.replicas, s.hosts, self._guests)
        present = inputs != NEVER
        missing = not present.all()
        if missing:  # a host that has heard nobody has nothing to learn from
            up = present.any(-1) if up is None else up & present.any(-1)
        feed, dropout, rounds = self._variant(missing, up is not None)
        places = self.replay.places(np.where(present, inputs, self.replay.written - 1))
        feed.load("places", np.broadcast_to(places, full))
        if missing:
            feed.load("present", np.broadcast_to(present, full))
        if up is not None:
            feed.load("up", np.broadcast_to(up, full[:3]))
        if dropout is not None:
            first = self.steps - self.epoch * self._iterations
            dropout.load(self.epoch, self._iterations, s.batch, slice(first, first + count))
        total = s.host_epochs * self._iterations
        feed.load("rate", rates(s.host_schedule, s.host_rule.rate, self.steps, count, total))
        self._watch.time("hosts", lambda: rounds.run(count))
        self.steps += count

    def _variant(self, missing: bool, masked: bool) -> tuple[Feed, Dropout | None, Rounds]:
        if (missing, masked) not in self._variants:
            device = self.stack.device
            feed = Feed(device, self._iterations)
            assert isinstance(self.stack.host, Host)
            worth = workers(device, self._settings.batch * self.stack.host.learner.parameters.numel())
            pieces = cut(len(self._sum), worth)
            dropout = None
            if self._settings.guest_dropout:  # party-wise: guests are hidden from a host
                keep = [1 - self._settings.guest_dropout] * self.stack.replicas
                dropout = Dropout("guest-dropout", self._guests, keep, self.stack.seeds, feed, device).never_all()
            parts = [self._part(feed, dropout, elements, missing, masked) for elements in pieces]
            self._variants[missing, masked] = feed, dropout, Rounds(parts, device, worth)
        return self._variants[missing, masked]

    def _part(
        self, feed: Feed, dropout: Dropout | None, elements: slice, missing: bool, masked: bool
    ) -> Callable[[Round], None]:
        """What some of the hosts do in a round; `missing`: a guest may be unheard, `masked`: a host may be down."""
        stack = self.stack
        assert isinstance(stack.host, Host)
        host, sums = stack.host.part(elements), self._sum[elements]
        element = torch.arange(len(self._sum), device=stack.device)[elements]
        replica, number = element // self._settings.hosts, element % self._settings.hosts

        def body(t: Round) -> None:
            places = feed.at("places", t).flatten(0, 1)[elements]  # (hosts, guests)
            pieces = [
                store.read(group.of(places, 1), replica) for group, store in zip(stack.groups, self.stores, strict=True)
            ]
            b = stack.join(pieces)  # (hosts, batch, W_g)
            present = None
            if missing:
                present = feed.at("present", t).flatten(0, 1)[elements][:, None].expand(-1, b.shape[1], -1)
            loss = host.step(
                b,
                feed.at("rate", t),
                present=present,
                dropped=None if dropout is None else ~dropout.at(t, replica, number),
                alive=feed.at("up", t).flatten()[elements] if masked else None,
            )
            sums.add_(loss)

        return body

    def _capacity(self) -> int:
        """Batches of a guest to keep: one epoch's where nothing is replayed, all within the budget otherwise."""
        s = self._settings
        late = self.post.longest if self.post else 0
        wanted = self._iterations * (s.communicated if s.replayed else 1) + late
        size = s.batch * self.stack.joint * _DTYPES[s.history_dtype].itemsize
        if s.history_bytes is None:
            return wanted
        if s.history_bytes < size * (1 + late):
            what = f"{late} rounds of late messages take" if late else "one round of encodings alone takes"
            raise UserError(f"history_bytes {s.history_bytes}: {what} {size * (1 + late)}")
        return min(wanted, s.history_bytes // size)
