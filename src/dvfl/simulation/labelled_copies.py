"""Altered copies of labelled rows, made by the guests: all strips of a copy by the same warp, with no word exchanged.

Which pattern alters which copy follows from the seed, the row's place among the labelled ones and the copy's number.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import PATTERNS, numpy_generator
from dvfl.parties.objectives.augmentation import image_copies
from dvfl.parties.objectives.warps import Strip


class LabelledCopies:
    """The guests' labelled rows, once as they are and `copies` times altered."""

    def __init__(
        self, data: VerticalData, copies: int, seeds: Sequence[int], device: torch.device, rows: int | None = None
    ) -> None:
        """`rows`: as many as the tables will have; those with labels unless given."""
        self.count, self._device = copies, device
        rows = len(data.y_train) if rows is None else rows
        drawn = {
            seed: numpy_generator(seed, "labelled copies").integers(PATTERNS, size=(rows, copies)) for seed in seeds
        }
        self._picks = torch.from_numpy(np.stack([drawn[seed] for seed in seeds])).to(device)  # (replicas, rows, copies)
        self._altering = [image_copies([strip], device) for strip in _strips(data)] if copies else []

    def tables(self, number: int, clean: Sequence[Tensor]) -> list[Tensor]:
        """Copy `number`, 0 for the rows as they are, of each guest's table: (replicas, rows, columns), or as given."""
        if number == 0:
            return list(clean)
        picks = self._picks[..., number - 1]
        shape = (len(picks), picks.shape[1], -1)
        return [
            by.altered(table.to(self._device).expand(shape), picks)
            for by, table in zip(self._altering, clean, strict=True)
        ]

    def joined(self, clean: Sequence[Tensor]) -> list[Tensor]:
        """All copies of each guest's table, one after the other."""
        if not self.count:
            return list(clean)
        shape = (*self._picks.shape[:2], -1)
        made = [self.tables(number, [table.to(self._device).expand(shape) for table in clean]) for number in self]
        return [torch.cat(copies, 1) for copies in zip(*made, strict=True)]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count + 1))


def check_copies(data: VerticalData, copies: int) -> None:
    """Refuses copies that guests cannot make alike."""
    if copies < 0:
        raise UserError(f"copies {copies}: 0 or more is right")
    if copies:
        _strips(data)


def _strips(data: VerticalData) -> list[Strip]:
    strips = []
    for guest in data.guests:
        if guest.image is None:
            raise UserError(
                f"copies: the rows of {guest.name} are no strips of images, so guests cannot alter them"
                " alike; 0 is right"
            )
        strips.append(guest.image)
    return strips
