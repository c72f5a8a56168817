"""Training rows where a round gathers its batches at one stroke, their order, and the rows held out from training."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.numerics.randomness import batches, numpy_generator
from dvfl.parties.objectives.objective import Supervision
from dvfl.simulation.rounds import Feed, Round


class GatheredTables:
    """The tables of guests of equal columns, in a stack of replicas x members.

    A member's table is (rows, columns), or (replicas, rows, columns) where each replica has its own.
    """

    def __init__(self, tables: Sequence[Tensor], replicas: int, device: torch.device) -> None:
        self._columns = tables[0].shape[-1]
        copies = 1 if tables[0].dim() == 2 else replicas
        self._values = torch.cat([table.reshape(-1, self._columns) for table in tables]).to(device)
        element = torch.arange(replicas * len(tables), device=device)
        self._replica = element // len(tables)  # of each element of the stack
        rows = torch.tensor([table.shape[-2] for table in tables], device=device)
        start, member = (rows * copies).cumsum(0) - rows * copies, element % len(tables)
        self._first_row = (start[member] + self._replica % copies * rows[member])[:, None]

    def take(self, rows: Tensor, elements: slice) -> Tensor:
        """Rows (replicas, batch) of some of the stack's elements: (elements, batch, columns)."""
        return self.take_own(rows.index_select(0, self._replica[elements]), elements)

    def take_own(self, rows: Tensor, elements: slice) -> Tensor:
        """The same of rows (elements, batch), where each element has its own."""
        flat = (rows + self._first_row[elements]).flatten()
        return self._values.index_select(0, flat).view(-1, rows.shape[1], self._columns)


class LabelledRows:
    """The rows that the holder of the labels trains on, in an order drawn anew every epoch, and those it holds out.

    A seed has the same order and holds out the same rows in every strategy. Rows may lie in several segments of equal
    length: row i of the first then takes row i of every other along wherever it goes. What does not fill the segments
    is left out. Rows may have copies, which lie behind them in the same order, all rows' first copies first: a row that
    is held out is so with all of them. Behind those lie, likewise, the encodings of partial passes: an epoch takes one
    of them or the row as it is, the next epoch the next, and where a row begins is drawn. The last rows may be of
    artificial entities, which are never held out.
    """

    def __init__(
        self,
        labels: NDArray[np.generic],  # (rows,), or (replicas, rows) where each replica has its own
        held_out: float,
        batch: int,
        seeds: Sequence[int],
        device: torch.device,
        segments: int = 1,
        copies: int = 0,
        parts: NDArray[np.int64] | None = None,  # (replicas, rows, some): classes that are averaged
        artificial: int = 0,
        partial: int = 0,
    ) -> None:
        self.rows = labels.shape[-1] // segments  # of a segment
        self.entries = labels.shape[-1] * (1 + copies)  # rows and copies
        self._copies, self._partial = copies, partial
        self._segments = segments
        self._labels = torch.from_numpy(np.ascontiguousarray(labels)).to(device).flatten()
        first = (torch.arange(len(seeds), device=device) * labels.shape[-1])[:, None]
        self._first_label = None if labels.ndim == 1 else first  # of each replica's own
        self._parts = None if parts is None else torch.from_numpy(parts).to(device).flatten(0, 1)
        self._first_part = first
        self._seeds = sorted(set(seeds))
        self._of = torch.tensor([self._seeds.index(seed) for seed in seeds], device=device)
        real = self.rows - artificial
        held = max(0, min(round(real * held_out), real - 1))
        shuffles = np.stack([numpy_generator(seed, "held-out").permutation(real) for seed in self._seeds])
        train = np.sort(shuffles[:, held:], 1).astype(np.int32)
        last = np.arange(real, self.rows, dtype=np.int32)
        train = np.concatenate([train, np.tile(last, (len(train), 1))], 1)
        self._train = np.concatenate([train + number * self.rows for number in range(copies + 1)], 1)  # (seeds, rows)
        self.held = (
            self.followed(torch.from_numpy(shuffles[:, :held]).to(device)[self._of]) if held else None
        )  # (replicas, rows)
        self._drawn = min(max(1, batch // segments), self._train.shape[1])  # rows a batch of the first segment
        self.batch = self._drawn * segments
        self.iterations = -(-self._train.shape[1] // self._drawn)

    def trained_on(self, replica: int) -> Tensor:
        """The rows that a replica trains on, and their copies; of those with guests hidden, none."""
        return torch.from_numpy(self._train[int(self._of[replica])]).to(self._labels.device)

    def partial_of(self, replica: int) -> Tensor:
        """Where those rows' encodings of all partial passes are."""
        rows = self.trained_on(replica)
        return torch.cat(
            [rows[rows < self.rows] + self.entries + number * self.rows for number in range(self._partial)]
        )

    def load(self, feed: Feed, epoch: int) -> None:
        """Draws the order of an epoch."""
        orders = [batches(self._train.shape[1], self._drawn, seed, "owner", epoch) for seed in self._seeds]
        drawn = [rows[order] for rows, order in zip(self._train, orders, strict=True)]
        if self._partial:
            drawn = [self._passed(rows, seed, epoch) for rows, seed in zip(drawn, self._seeds, strict=True)]
        feed.load("rows", np.stack(drawn, 1))

    def at(self, feed: Feed, t: Round, replicas: slice = slice(None)) -> Tensor:
        """The rows of round `t`: (replicas, batch)."""
        return self.followed(feed.at("rows", t).index_select(0, self._of[replicas]))

    def guess(self, supervision: Supervision) -> Tensor:
        """The score of the best constant output on each replica's held-out rows, where there are any: (replicas,)."""
        if self.held is None:
            return torch.full((len(self._of),), -math.inf, device=self._labels.device)
        return supervision.guess(self.labels_of(self.held))

    def followed(self, rows: Tensor) -> Tensor:
        """Rows (.., count) of the first segment, and after them those that go with them: (.., segments x count)."""
        if self._segments == 1:
            return rows
        return torch.cat([rows + number * self.rows for number in range(self._segments)], -1)

    def first(self, rows: Tensor) -> Tensor:
        """What `followed` was given."""
        return rows[..., : rows.shape[-1] // self._segments]

    def labels_of(self, rows: Tensor, replicas: slice = slice(None)) -> Tensor:
        """The labels of rows or copies (replicas, batch) of some replicas."""
        if self._copies or self._partial:
            rows = rows % self.rows
        places = rows if self._first_label is None else rows + self._first_label[replicas]
        return self._labels.index_select(0, places.flatten()).view(rows.shape)

    def targets_of(self, rows: Tensor, replicas: slice = slice(None)) -> Tensor:
        """What is learned of rows or copies: their labels, or the classes to average, (replicas, batch, some)."""
        if self._parts is None:
            return self.labels_of(rows, replicas)
        places = rows % self.rows + self._first_part[replicas]
        return self._parts.index_select(0, places.flatten()).view(*rows.shape, -1)

    def _passed(self, rows: NDArray[np.int32], seed: int, epoch: int) -> NDArray[np.int32]:
        """Entries with each row as it is replaced by the encoding whose turn it is; copies stay."""
        first = numpy_generator(seed, "owner passes").integers(self._partial + 1, size=self.rows)
        number = (first[rows % self.rows] + epoch) % (self._partial + 1)
        ahead = np.where(number > 0, number + self._copies, 0) * self.rows
        return np.where(rows < self.rows, rows + ahead, rows).astype(np.int32)
