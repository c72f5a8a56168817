"""Two altered copies of every row of a batch, for objectives that compare them.

How a copy is altered is a pattern from a bank, the same bank for all seeds; which pattern is picked for which row is
drawn by the caller. A party needs numbers of patterns only, and a round costs a gather.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dvfl.parties.randomness import PATTERNS, numpy_generator

# Chosen on held-out training rows (docs/tuning.md). Of images:
_ACROSS, _DOWN = 1 / 28, 1 / 7  # the furthest that a strip is moved, of its width and of its height
_SLANT = 0.4  # pixels aside for each one up, at most
_INTENSITY = 0.3  # the most that all values rise or fall by
# Of tables:
_REPLACED = 0.15  # part of a copy's columns that is taken from other rows


class Augmentation(Protocol):
    """Makes copies (stack, 2 x batch, columns) of rows (stack, batch, columns)."""

    def copies(self, x: Tensor, picks: Tensor) -> Tensor:
        """`picks` (stack, 2 x batch) says which pattern alters which copy."""


@dataclass(frozen=True)
class ImageCopies:
    """Moved, slanted, darker or lighter; what moves out of a strip is gone."""

    sources: Tensor  # (patterns, columns): the column that each one's value comes from
    weights: Tensor  # (patterns, columns): what it is multiplied by, 0 for what comes from outside

    def copies(self, x: Tensor, picks: Tensor) -> Tensor:
        stack, _, columns = x.shape
        sources, weights = (bank.index_select(0, picks.flatten()) for bank in (self.sources, self.weights))
        moved = x.repeat(1, 2, 1).gather(2, sources.view(stack, -1, columns))
        return moved.mul_(weights.view(stack, -1, columns))


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


def image_copies(height: int, width: int, device: torch.device) -> ImageCopies:
    """For strips of images of this size."""
    draw = numpy_generator(0, "image copies", height, width)
    across, down = max(1, round(_ACROSS * width)), round(_DOWN * height)
    y, x = np.mgrid[:height, :width]
    each = (PATTERNS, 1, 1)
    slant = draw.uniform(-_SLANT, _SLANT, each) * (y - (height - 1) / 2)
    from_x = x + np.rint(slant + draw.uniform(-across, across, each)).astype(np.int64)
    from_y = y + draw.integers(-down, down, each, endpoint=True)
    inside = (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    weights = inside * draw.uniform(1 - _INTENSITY, 1 + _INTENSITY, each)
    sources = np.where(inside, from_y * width + from_x, 0)
    return ImageCopies(
        torch.from_numpy(sources.reshape(PATTERNS, -1)).to(device),
        torch.from_numpy(weights.reshape(PATTERNS, -1).astype(np.float32)).to(device),
    )


def table_copies(columns: int, batch: int, device: torch.device) -> TableCopies:
    """For rows of any other sort, in batches of this size."""
    draw = numpy_generator(0, "table copies", columns, batch)
    offsets = draw.integers(1, max(2, batch), (PATTERNS, columns))
    offsets *= draw.random((PATTERNS, columns)) < _REPLACED
    return TableCopies(torch.from_numpy(offsets.astype(np.int32)).to(device))
