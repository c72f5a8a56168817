"""Altered copies of rows: two of every row of a batch for objectives that compare them, more of labelled rows.

How a copy is altered is a pattern from a bank, the same bank for all seeds; which pattern is picked for which row is
drawn by the caller. A party needs numbers of patterns only, and a round costs a gather.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from dvfl.parties.numerics.randomness import PATTERNS, numpy_generator
from dvfl.parties.objectives.warps import Strip, warped

_REPLACED = 0.15  # part of a copy's columns that is taken from other rows; chosen on held-out rows (docs/tuning.md)


class Augmentation(Protocol):
    """Makes copies (stack, 2 x batch, columns) of rows (stack, batch, columns)."""

    def copies(self, x: Tensor, picks: Tensor) -> Tensor:
        """`picks` (stack, 2 x batch) says which pattern alters which copy."""

    def of(self, members: Tensor) -> Self:
        """For a stack whose elements (stack,) are these members of those it was made for."""


@dataclass(frozen=True)
class ImageCopies:
    """Strips as parts of warped pictures: each value lies between four of its own strip, never in a neighbour's."""

    corner: Tensor  # (members x patterns, columns): the column of the upper left of the four
    across: Tensor  # (members x patterns, columns): how far to the right of it, from 0 to 1
    down: Tensor  # and how far below it
    light: Tensor  # (members x patterns, 1): what all values are multiplied by
    right: int  # columns from a value to the one to its right
    below: int
    first: Tensor  # (stack, 1), or (1, 1): where an element's patterns begin

    def copies(self, x: Tensor, picks: Tensor) -> Tensor:
        return self.altered(x.repeat(1, 2, 1), picks)

    def altered(self, x: Tensor, picks: Tensor) -> Tensor:
        """Rows (stack, rows, columns), each by the pattern that `picks` (stack, rows) says."""
        chosen = (picks + self.first).flatten()
        corner, across, down = (
            bank.index_select(0, chosen).view(x.shape) for bank in (self.corner, self.across, self.down)
        )
        above = x.gather(2, corner).lerp_(x.gather(2, corner + self.right), across)
        corner += self.below
        below = x.gather(2, corner).lerp_(x.gather(2, corner + self.right), across)
        return above.lerp_(below, down).mul_(self.light.index_select(0, chosen).view(*x.shape[:2], 1))

    def of(self, members: Tensor) -> Self:
        return replace(self, first=members[:, None] * PATTERNS)


@dataclass(frozen=True)
class TableCopies:
    """Some columns with the values of other rows of the batch, each column of another row: SCARF's corruption.

    Bahri, Jiang, Tay and Metzler, "SCARF: self-supervised contrastive learning using random feature corruption" (2022).
    """

    offsets: Tensor  # (patterns, columns): how many rows further a column's value comes from; 0 for its own

    def copies(self, x: Tensor, picks: Tensor, known: Tensor | None = None) -> Tensor:
        """Values that are not `known` (stack, batch, columns) go into no other row."""
        stack, batch, columns = x.shape
        row = torch.arange(batch, device=x.device).repeat(2)[:, None]
        offsets = self.offsets.index_select(0, picks.flatten()).view(stack, -1, columns)
        sources = (offsets + row).remainder_(batch)
        values = x.gather(1, sources)
        return values if known is None else torch.where(known.gather(1, sources), values, x.repeat(1, 2, 1))

    def of(self, members: Tensor) -> Self:
        return self  # one bank serves all


def image_copies(strips: Sequence[Strip], device: torch.device) -> ImageCopies:
    """For strips of one size, a member each. A pattern is the same warp in all strips of a picture."""
    height, width, *_ = strips[0]
    if any(strip[:2] != (height, width) for strip in strips):
        raise ValueError("strips of several sizes cannot share a bank")
    parts = [warped(strip) for strip in strips]
    corner, across, down, light = (
        torch.from_numpy(np.concatenate(kind)).to(device) for kind in zip(*parts, strict=True)
    )
    first = torch.zeros(1, 1, dtype=torch.int64, device=device)
    return ImageCopies(corner, across, down, light, int(width > 1), width if height > 1 else 0, first)


def table_copies(columns: int, batch: int, device: torch.device) -> TableCopies:
    """For rows of any other sort, in batches of this size."""
    draw = numpy_generator(0, "table copies", columns, batch)
    offsets = draw.integers(1, max(2, batch), (PATTERNS, columns))
    offsets *= draw.random((PATTERNS, columns)) < _REPLACED
    return TableCopies(torch.from_numpy(offsets.astype(np.int32)).to(device))
