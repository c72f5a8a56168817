"""Late messages: delayed, overtaking each other, arriving twice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.memory.registers import NEVER
from dvfl.parties.numerics.randomness import numpy_generator

BLOCK = 1024  # rounds whose luck is drawn together


@dataclass(frozen=True)
class Lateness:
    """How late every message from a guest to a host is, in rounds; 0: not at all."""

    delay: int = 0  # all by this many
    reorder: int = 0  # each by 0 to this many of its own
    duplicate: int = 0  # each comes again, 1 to this many after the first time

    @property
    def longest(self) -> int:
        """The most rounds that a copy can be late."""
        return self.delay + self.reorder + self.duplicate


def lags(lateness: Lateness, seed: int, link: str, block: int) -> NDArray[np.int64]:
    """How late both copies of each message are that a link carries in a block of rounds: (2, BLOCK).

    Where nothing is duplicated the second copy comes with the first.
    """
    first = np.full(BLOCK, lateness.delay, np.int64)
    if lateness.reorder:
        draws = numpy_generator(seed, "reorder", link, block)
        first += draws.integers(0, lateness.reorder, BLOCK, endpoint=True)
    second = first
    if lateness.duplicate:
        draws = numpy_generator(seed, "duplicate", link, block)
        second = first + draws.integers(1, lateness.duplicate, BLOCK, endpoint=True)
    return np.stack([first, second])


class Lags:
    """How late the messages of a stack are, link by link, round after round."""

    def __init__(
        self,
        lateness: Sequence[Lateness | None],
        seeds: Sequence[int],
        guests: Sequence[str],
        hosts: Sequence[str],
    ) -> None:
        self._lateness = [Lateness() if one is None else one for one in lateness]
        self._seeds = list(seeds)
        self._links = [f"{guest}>{host}" for host in hosts for guest in guests]
        self._copies = 2 if any(one.duplicate for one in self._lateness) else 1
        self.longest = max((one.longest for one in self._lateness), default=0)
        self.shape = (len(self._seeds), len(hosts), len(guests))
        self.links = len(self._seeds) * len(self._links)
        self.round = 0  # rounds so far
        self._drawn: tuple[int, NDArray[np.int32]] | None = None  # the last block and its lags

    def due(self, sent: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All copies of what is sent in the next rounds: in which of them it is due, on which link, which number.

        `sent` (rounds, replicas, hosts, guests) holds the batch number that a message carries, NEVER where none was
        sent. Rounds count from the first of these.
        """
        rounds = len(sent)
        sent = sent.reshape(rounds, self.links)
        when, link = np.nonzero(sent != NEVER)
        numbers = sent[when, link]
        late = [lag[when, link] for lag in self._next(rounds)]
        self.round += rounds
        due = np.concatenate([when + lag for lag in late])
        return due, np.tile(link, len(late)), np.tile(numbers, len(late))

    def _next(self, rounds: int) -> NDArray[np.int32]:
        """How late the messages of the next rounds are: (copies, rounds, replicas x hosts x guests)."""
        start, stop = self.round, self.round + rounds
        pieces = []
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            first = block * BLOCK
            pieces.append(self._block(block)[:, max(start - first, 0) : stop - first])
        return np.concatenate(pieces, axis=1)

    def _block(self, block: int) -> NDArray[np.int32]:
        """The lags of a block of rounds; the last one is kept, since rounds may come one by one."""
        if self._drawn is None or self._drawn[0] != block:
            drawn = np.empty((self._copies, BLOCK, len(self._seeds), len(self._links)), np.int32)
            for replica, (lateness, seed) in enumerate(zip(self._lateness, self._seeds, strict=True)):
                for number, link in enumerate(self._links):
                    drawn[:, :, replica, number] = lags(lateness, seed, link, block)[: self._copies]
            self._drawn = block, drawn.reshape(self._copies, BLOCK, -1)
        return self._drawn[1]


class Post:
    """Messages on their way from guests to hosts: the newest that arrives in each round, where some are late."""

    def __init__(self, lags: Lags) -> None:
        self._lags, self.longest = lags, lags.longest
        self._pending = np.full(
            (self.longest, *lags.shape), NEVER, np.int64
        )  # the newest that is due in each of the next rounds

    def deliver(self, sent: NDArray[np.int64]) -> NDArray[np.int64]:
        """The newest batch number that arrives in each round, NEVER where nothing does.

        `sent` (rounds, replicas, hosts, guests) holds the batch number that a message carries, NEVER where none was
        sent. What is still on its way at the end arrives in the next call, whose rounds follow these.
        """
        rounds = len(sent)
        if not rounds:
            return sent.copy()
        arrived = np.full((rounds + self.longest, *sent.shape[1:]), NEVER, np.int64)
        arrived[: self.longest] = self._pending
        due, link, numbers = self._lags.due(sent)
        np.maximum.at(arrived.reshape(-1), due * self._lags.links + link, numbers)
        self._pending = arrived[rounds:].copy()
        return arrived[:rounds]

    def state(self) -> dict[str, Tensor]:
        """What is on its way, and how many rounds have passed."""
        return {"pending": torch.from_numpy(self._pending.copy()), "round": torch.tensor(self._lags.round)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Goes on from where `state` was taken."""
        self._pending = state["pending"].numpy().copy()
        self._lags.round = int(state["round"])


class FullPost:
    """The same, but every message that arrives, since each brings other rows."""

    def __init__(self, lags: Lags) -> None:
        self._lags, self.longest = lags, lags.longest
        self._pending = np.zeros((3, 0), np.int64)  # of each message: in how many rounds it is due, link, number

    def deliver(self, sent: NDArray[np.int64]) -> NDArray[np.int64]:
        """The batch numbers that arrive in each round, from old to new: (rounds, most, replicas, hosts, guests).

        `most` is the largest number of messages that any link brings in any round; NEVER fills the rest.
        """
        rounds, links = len(sent), self._lags.links
        messages = np.concatenate([self._pending, np.stack(self._lags.due(sent))], axis=1)
        now = messages[0] < rounds
        self._pending = messages[:, ~now] - np.array([[rounds], [0], [0]])
        due, link, number = messages[:, now]
        span = number.max(initial=0) + 1
        keys = np.sort((due * links + link) * span + number)
        place, number = np.divmod(keys[np.diff(keys, prepend=-1) > 0], span)  # two copies at once are one
        first = np.flatnonzero(np.diff(place, prepend=-1))  # of each link in each round
        rank = np.arange(len(place)) - np.repeat(first, np.diff(first, append=len(place)))
        arrived = np.full((rounds, int(rank.max(initial=0)) + 1, links), NEVER, np.int64)
        arrived[place // links, rank, place % links] = number
        return arrived.reshape(*arrived.shape[:2], *sent.shape[1:])

    def state(self) -> dict[str, Tensor]:
        """What is on its way, and how many rounds have passed."""
        return {"pending": torch.from_numpy(self._pending.copy()), "round": torch.tensor(self._lags.round)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Goes on from where `state` was taken."""
        self._pending = state["pending"].numpy().copy()
        self._lags.round = int(state["round"])
