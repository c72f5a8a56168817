"""Row registers, stacked: the newest encoding of every row from every guest.

A real host has one such table (`parties.memory.row_registers`).

A round writes what arrives in it and draws a batch of rows. Which rows can be drawn in which round depends on the
faults alone, so it is worked out ahead, as the order in which rows were first heard.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.faults.lateness import FullPost
from dvfl.parties.memory.registers import NEVER
from dvfl.parties.memory.replay import BatchStore, Numbers
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.simulation.rounds import Feed, Round
from dvfl.simulation.stack import Stack
from dvfl.strategies.decoupled.host_memory import Inputs, Mask, Part

_NOT_YET = 2**31 - 1  # the round in which a row was first heard that never was
_LUCK = 31  # bits of a draw


class RowTables:
    """The row registers of the hosts of all replicas, in a stack of replicas x hosts."""

    def __init__(
        self, stack: Stack, stores: Sequence[BatchStore], capacity: int, rows: int, post: FullPost | None
    ) -> None:
        self._stack, self._stores, self._capacity, self._post = stack, stores, capacity, post
        self._count, self._iterations = rows, -(-rows // stack.settings.batch)
        self.written = 0
        elements, guests, device = stack.replicas * stack.settings.hosts, len(stack.latents), stack.device
        # One row more than there are: where a write goes that does not count, so that every round does the same work.
        self._values = [
            torch.zeros(
                (elements, len(group.members), rows + 1, group.latent), dtype=store.batches.dtype, device=device
            )
            for group, store in zip(stack.groups, stores, strict=True)
        ]
        shape = (elements, guests, rows + 1)
        self._numbers = torch.full(shape, NEVER, dtype=torch.int32, device=device)  # of the batch each row came with
        self._since = torch.full(shape, _NOT_YET, dtype=torch.int32, device=device)  # the round it was first heard
        # Rows in the order in which they were first heard: from each guest, then from anybody.
        self._order = torch.zeros((elements, guests + 1, rows), dtype=torch.int32, device=device)
        self._heard = np.zeros((elements, guests + 1), np.int64)  # how many of them
        self._replicas = torch.arange(stack.replicas, device=device).repeat_interleave(stack.settings.hosts)
        # The rows that the batches in the ring are made of.
        self._batches = torch.zeros((capacity, stack.replicas, stack.settings.batch), dtype=torch.int32, device=device)

    def make_room(self, count: int) -> Numbers:
        """Numbers for the next `count` batches: what the ring passes has been written to the tables."""
        self.written += count
        return self.written - count + np.arange(count)

    def receive(self, sent: Numbers, rows: NDArray[np.int32], up: Mask | None, part: Part | None) -> Inputs | None:
        """All messages that reach a host which is up; in rounds without training they are written here and now."""
        count, stack = len(sent), self._stack
        numbers = self.written - count + np.arange(count)
        places = torch.from_numpy(numbers % self._capacity).to(stack.device)
        self._batches[places] = torch.from_numpy(rows).to(stack.device)
        arrived = sent[:, None] if self._post is None else self._post.deliver(sent)
        if up is not None:
            arrived = np.where(up[:, None, :, :, None], arrived, NEVER)
        full = (*arrived.shape[:2], stack.replicas, stack.settings.hosts, len(stack.latents))
        arrivals = np.require(np.broadcast_to(arrived, full).reshape(*full[:2], -1, full[-1]), requirements=["C", "W"])
        heard = None if self._complete else self._hear(arrivals, numbers)
        if part is not None:
            return self._inputs(part, heard, arrivals)
        everybody = slice(None)
        for number in torch.from_numpy(arrivals).to(stack.device).flatten(0, 1):
            self._write(number, everybody)
        return None

    def recall(self, part: Part) -> Inputs:
        """More draws from the tables."""
        heard = None if self._complete else np.broadcast_to(self._heard, (self._iterations, *self._heard.shape))
        return self._inputs(part, heard, None)

    def reader(self, feed: Feed, elements: slice, kind: tuple[int, ...]) -> Callable[[Round], Tensor]:
        """Writes what arrives, then gathers the rows drawn."""
        most, complete = kind  # messages that a link may bring in a round; whether nobody lacks any row

        def read(t: Round) -> Tensor:
            if most:
                for number in feed.at("arrivals", t)[:, elements]:
                    self._write(number, elements)
            luck = feed.at("luck", t).flatten(0, 1)[elements]  # (hosts, batch)
            if complete:
                rows = _scaled(luck, self._count)[:, None].expand(-1, len(self._stack.latents), -1)
            else:
                others = feed.at("others", t).flatten(0, 1)[elements]  # (hosts, guests, batch)
                rows = self._draw(luck, others, feed.at("heard", t)[elements], elements)
            return self._read(rows, elements)

        return read

    def release(self) -> None:
        """Lets go of everything."""
        self._values.clear()
        self._numbers = self._since = self._order = self._batches = torch.empty(0)

    def state(self) -> dict[str, Tensor]:
        """What the tables hold, what is still on its way, and the rows in it."""
        return self._tensors() | (self._post.state() if self._post else {})

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        for name, tensor in self._tensors().items():
            if name in state:  # or it was released before, and will be again
                tensor.copy_(state[name])
        if self._post is not None:
            self._post.restore(state)
        self._sort()

    def _tensors(self) -> dict[str, Tensor]:
        if not self._values:
            return {}
        values = {f"values.{number}": values for number, values in enumerate(self._values)}
        return {"numbers": self._numbers, "since": self._since, "batches": self._batches, **values}

    @property
    def _complete(self) -> bool:
        """Whether every host holds every row from every guest."""
        return bool((self._heard == self._count).all())

    def _inputs(self, part: Part, heard: Numbers | None, arrivals: Numbers | None) -> Inputs:
        """Draws for rounds, where so many rows can be drawn: (rounds, hosts, guests and anybody), None for all."""
        stack, s = self._stack, self._stack.settings
        feeds: dict[str, NDArray[np.generic]] = {"luck": self._luck("rows drawn", part, s.batch)}
        if arrivals is not None:
            feeds["arrivals"] = arrivals
        kind = (0 if arrivals is None else arrivals.shape[1], int(heard is None))
        if heard is None:
            return Inputs(feeds, np.ones((1, 1, 1, 1), bool), kind=kind)
        feeds["others"] = self._luck("stand-ins", part, len(stack.latents), s.batch)
        feeds["heard"] = heard
        present = heard[..., :-1].reshape(-1, stack.replicas, s.hosts, len(stack.latents)) > 0
        return Inputs(feeds, present, kind=kind)

    def _luck(self, name: str, part: Part, *size: int) -> NDArray[np.int32]:
        """Numbers of so many bits for part of an epoch: (rounds, replicas, hosts, ..)."""
        whole = (self._iterations, self._stack.settings.hosts, *size)
        drawn = {
            seed: numpy_generator(seed, name, part.epoch).integers(1 << _LUCK, size=whole, dtype=np.int32)[part.rounds]
            for seed in set(self._stack.seeds)
        }
        return np.stack([drawn[seed] for seed in self._stack.seeds], 1)

    def _hear(self, arrivals: Numbers, numbers: Numbers) -> Numbers:
        """How many rows were heard by the end of each round: (rounds, hosts, guests and anybody). Orders them too."""
        device = self._stack.device
        everybody = slice(None)
        for t, arriving in zip(numbers.tolist(), torch.from_numpy(arrivals).to(device), strict=True):
            for number in arriving:
                rows = torch.where(number[..., None] == NEVER, self._count, self._rows_of(number, everybody))
                now = torch.full_like(rows, t, dtype=torch.int32)
                self._since.scatter_reduce_(2, rows, now, "amin")
        moments = self._sort()
        times = torch.from_numpy(numbers).int().to(device).expand(*moments.shape[:2], -1).contiguous()
        return torch.searchsorted(moments, times, right=True).permute(2, 0, 1).cpu().numpy()

    def _sort(self) -> Tensor:
        """Puts rows in the order in which they were first heard; the rounds of that, in this order."""
        since = self._since[..., : self._count]
        moments, order = torch.cat([since, since.amin(1, keepdim=True)], 1).sort(dim=2, stable=True)
        self._order.copy_(order)
        self._heard = (moments != _NOT_YET).sum(2).cpu().numpy()
        return moments

    def _write(self, number: Tensor, elements: slice) -> None:
        """Writes the rows of a batch from each guest, (hosts, guests) by number, that are newer than what is held."""
        rows, held = self._rows_of(number, elements), self._numbers[elements]
        rows = torch.where(number[..., None] > held.gather(2, rows), rows, self._count)
        held.scatter_(2, rows, number.int()[..., None].expand_as(rows))
        places = number.remainder(self._capacity)
        for group, store, values in zip(self._stack.groups, self._stores, self._values, strict=True):
            codes = store.read(group.of(places, 1), self._replicas[elements])
            flat, index = _flat(values[elements], group.of(rows, 1))
            flat.index_copy_(0, index, codes.flatten(0, 2))

    def _draw(self, luck: Tensor, others: Tensor, heard: Tensor, elements: slice) -> Tensor:
        """Rows that anybody has sent, for each guest replaced by others of its own where it has not sent them."""
        order = self._order[elements]
        drawn = order[:, -1].gather(1, _scaled(luck, heard[:, -1:]))
        rows = drawn[:, None].expand_as(others).long()
        own = order[:, :-1].gather(2, _scaled(others, heard[:, :-1, None]))
        return torch.where(self._numbers[elements].gather(2, rows) != NEVER, rows, own)

    def _read(self, rows: Tensor, elements: slice) -> Tensor:
        """The encodings of rows (hosts, guests, batch): (hosts, batch, W_g)."""
        pieces = []
        for group, values in zip(self._stack.groups, self._values, strict=True):
            own = group.of(rows, 1)
            flat, index = _flat(values[elements], own)
            pieces.append(flat.index_select(0, index).view(*own.shape, -1))
        return self._stack.join(pieces)

    def _rows_of(self, number: Tensor, elements: slice) -> Tensor:
        """The rows that make batches (hosts, guests): (hosts, guests, batch)."""
        places = number.remainder(self._capacity) * self._stack.replicas + self._replicas[elements][:, None]
        return self._batches.flatten(0, 1).index_select(0, places.flatten()).view(*number.shape, -1).long()


def _scaled(luck: Tensor, count: Tensor | int) -> Tensor:
    """Draws of _LUCK bits as numbers from 0 to below `count`."""
    return (luck.long() * count) >> _LUCK


def _flat(values: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """(hosts, guests, rows, latent) as one list of encodings, and where (hosts, guests, batch) of them lie in it."""
    hosts, guests, count, _ = values.shape
    first = torch.arange(hosts * guests, device=values.device).view(hosts, guests, 1) * count
    return values.flatten(0, 2), (first + rows).flatten()
