"""A party's own rows in an order that says nothing, padded with rows that do not exist."""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dvfl.align.matching import Slots, grouped
from dvfl.align.tasks import derived
from dvfl.errors import UserError

_AT_ONCE = 1 << 18
DIGEST = 16  # bytes: no two of any number of ids have the same


class Rows(NamedTuple):
    """Normalised ids: of rows that are trained on, and of those that are only ever encoded."""

    train: Sequence[bytes]
    test: Sequence[bytes]


class Sizes(NamedTuple):
    """How many of each, those that do not exist counted."""

    train: int
    test: int

    def pieces(self, most: int) -> list[tuple[int, int]]:
        """Starts and stops of pieces of at most so many: first those of training rows, then the others."""
        edges = [*range(0, self.train, most), *range(self.train, sum(self), most), sum(self)]
        return list(pairwise(edges))


class ShuffledRows:
    """Rows by a hash of their ids under a key: the same order whenever it is made, whatever the file's order."""

    def __init__(self, rows: Rows, key: bytes, pad: int, who: str) -> None:
        self.sizes = Sizes(*(-(-len(part) // pad) * pad for part in rows))
        self._rows, self._key = rows, key[:64]
        self._made_up = [
            derived(self._key, "row", part, number)[:32]
            for part, (size, ids) in enumerate(zip(self.sizes, rows, strict=True))
            for number in range(size - len(ids))
        ]
        digests = np.concatenate([self._digests(ids) for ids in rows])
        _, begins = grouped(digests)
        both = int((~begins).sum())
        if both:
            raise UserError(f"{who}: {both} ids are in its training rows and in its test rows; each may be in one")
        train, test = len(rows.train), len(rows.test)
        made_up = self._digests(self._made_up)
        extra = self.sizes.train - train
        # Row numbers: training rows, test rows, then those that are made up for either.
        self._order = np.concatenate(
            [
                self._sorted(digests[:train], made_up[:extra], 0, train + test),
                self._sorted(digests[train:], made_up[extra:], train, train + test + extra),
            ]
        )
        real = self._order[self._order < train + test]
        counted = repr((train, test)).encode() + digests[real].tobytes()
        self.digest = hashlib.blake2b(counted, digest_size=32, key=self._key).digest()

    def ids(self, start: int, stop: int) -> list[bytes]:
        """The ids at these places of the order."""
        return [self._id(int(row)) for row in self._order[start:stop]]

    def digests(self) -> NDArray[np.uint8]:
        """A hash under the key of the id at each place of the order: (places, 16)."""
        return self._digests(self.ids(0, sum(self.sizes)))

    def in_order(self, slots: NDArray[np.int32]) -> Slots:
        """The slots of the rows as they came, from those of the places of the order."""
        by_row = np.empty(len(slots), np.int32)
        by_row[self._order] = slots
        train, test = len(self._rows.train), len(self._rows.test)
        return Slots(by_row[:train], by_row[train : train + test])

    def _id(self, row: int) -> bytes:
        for ids in (self._rows.train, self._rows.test):
            if row < len(ids):
                return ids[row]
            row -= len(ids)
        return self._made_up[row]

    def _digests(self, ids: Sequence[bytes]) -> NDArray[np.uint8]:
        parts = [
            b"".join(
                [hashlib.blake2b(one, digest_size=DIGEST, key=self._key).digest() for one in ids[at : at + _AT_ONCE]]
            )
            for at in range(0, len(ids), _AT_ONCE)
        ]
        return np.frombuffer(b"".join(parts), np.uint8).reshape(-1, DIGEST)

    def _sorted(
        self, real: NDArray[np.uint8], made_up: NDArray[np.uint8], first: int, first_made_up: int
    ) -> NDArray[np.intp]:
        numbers = np.concatenate(
            [np.arange(first, first + len(real)), np.arange(first_made_up, first_made_up + len(made_up))]
        )
        order, _ = grouped(np.concatenate([real, made_up]))
        return numbers[order]
