"""Replay buffers `A[host]`: bounded history of the inputs a host formed.

A guest's batch is stored once however many hosts hold it, and a host's history is the numbers of the batches that made
each input. Batches live in a ring; what a register still holds is kept apart when the ring passes over it.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.memory.registers import NEVER

Numbers = NDArray[np.int64]
_HALF_LIMIT = 65504.0  # the largest float16


class BatchStore:
    """The encodings that a stack of equal guests pushed: a ring of batches, and one reserved place a register."""

    def __init__(
        self,
        replicas: int,
        guests: int,
        hosts: int,
        batch: int,
        latent: int,
        capacity: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.replicas, self.guests, self.capacity = replicas, guests, capacity
        self.batch, self.latent = batch, latent
        shape = (capacity + hosts, replicas * guests, batch, latent)
        self.batches = torch.empty(shape, dtype=dtype, device=device)
        self._first = torch.arange(replicas * guests, device=device).view(replicas, guests)  # element of each guest
        self._limit = _HALF_LIMIT if dtype == torch.float16 else None

    def write(self, place: Tensor, code: Tensor, elements: slice = slice(None)) -> None:
        """Stores one round's encodings of elements (of replicas x guests, batch, latent) at a place of the ring."""
        if self._limit is not None:
            code = code.clamp(-self._limit, self._limit)
        if code.is_cuda:
            self.batches.index_copy_(0, place.view(1), code[None].to(self.batches.dtype))
        else:
            self.batches[int(place), elements].copy_(code)

    def rewrite(self, places: Tensor, element: int, codes: Tensor) -> None:
        """Puts others (places, batch, latent) in the place of one element's batches."""
        if self._limit is not None:
            codes = codes.clamp(-self._limit, self._limit)
        self.batches[places, element] = codes.to(self.batches.dtype)

    def read(self, places: Tensor, replicas: Tensor) -> Tensor:
        """Batches at `places` (readers, guests) of the readers' replicas: (readers, guests, batch, latent)."""
        flat = places * (self.replicas * self.guests) + self._first.index_select(0, replicas)
        rows = self.batches.view(-1, self.batch * self.latent).index_select(0, flat.flatten())
        return rows.view(*places.shape, self.batch, self.latent)

    def rescue(self, moves: NDArray[np.bool_], places: Numbers) -> None:
        """Copies the batch of each register marked in (replicas, hosts, guests) to that register's reserved place."""
        replica, host, guest = (torch.from_numpy(index) for index in np.nonzero(moves))
        source = torch.from_numpy(places[moves])
        element = replica * self.guests + guest
        device = self.batches.device
        self.batches[(self.capacity + host).to(device), element.to(device)] = self.batches[
            source.to(device), element.to(device)
        ]


class ReplayBuffer:
    """`A[host]` of replicas x hosts: the batch number of every guest for each input that was kept."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity  # batches that the store holds
        self.written = 0  # batches pushed so far; the newest has number written - 1
        self.inputs: Numbers = np.zeros((0, 1, 1, 1), np.int64)  # (inputs, replicas, hosts, guests)
        self.kept: NDArray[np.bool_] = np.zeros((0, 1, 1), bool)  # (inputs, replicas, hosts)

    @property
    def oldest(self) -> int:
        """Number of the oldest batch still in the ring."""
        return max(0, self.written - self.capacity)

    def places(self, numbers: Numbers) -> Numbers:
        """Where batches (.., replicas, hosts, guests) lie: in the ring, or at the register's reserved place."""
        host = np.arange(numbers.shape[-2])[:, None]
        return np.where(numbers >= self.oldest, numbers % self.capacity, self.capacity + host)

    def append(self, inputs: Numbers, kept: NDArray[np.bool_]) -> None:
        """Adds inputs (rounds, replicas, hosts, guests); each host keeps those marked (rounds, replicas, hosts)."""
        self.inputs = _joined(self.inputs, inputs)
        self.kept = _joined(self.kept, kept)

    def forget(self, registers: Numbers) -> None:
        """Drops inputs whose batches the ring has passed, unless a register still holds that very batch."""
        lost = (self.inputs < self.oldest) & (self.inputs != NEVER) & (self.inputs != registers)
        self.kept = self.kept & ~lost.any(-1)
        first = int(np.argmax(self.kept.any((1, 2)))) if self.kept.any() else len(self.kept)
        self.inputs, self.kept = self.inputs[first:], self.kept[first:]

    def draw(self, positions: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """The inputs at `positions` (count, replicas, hosts) of each host's history, taken modulo its length.

        Batch numbers (count, replicas, hosts, guests), and (replicas, hosts) whether there was anything to draw from.
        """
        length = self.kept.sum(0)  # (replicas, hosts)
        positions = positions % np.maximum(length, 1)
        if self.kept.all() and self.inputs.shape[1:3] == (1, 1):  # one history for all
            return self.inputs[positions, 0, 0], length > 0
        order = np.argsort(~self.kept, axis=0, kind="stable")  # the kept ones first, in their order
        chosen = np.take_along_axis(order, positions, axis=0)
        inputs = np.broadcast_to(self.inputs, (len(self.inputs), *length.shape, self.inputs.shape[3]))
        return np.take_along_axis(inputs, chosen[..., None], axis=0), length > 0


def _joined(history: NDArray[np.generic], new: NDArray[np.generic]):  # type: ignore[no-untyped-def]
    """The two one after the other; their other axes broadcast, since without faults all hosts share one history."""
    if not len(history):
        return new
    tail = np.broadcast_shapes(history.shape[1:], new.shape[1:])
    pieces = [np.broadcast_to(piece, (len(piece), *tail)) for piece in (history, new)]
    return np.concatenate(pieces)
