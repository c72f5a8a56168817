"""Passes over the labelled rows in which hosts encode them with guests hidden: what the owner meets when some are down.

All hosts of a replica hide the same guests of a row, as real ones do, by seed, pass and row (parties/pass_masks.py).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.pass_masks import left, shown
from dvfl.settings.training import Settings


def partial_marks(
    settings: Settings, seeds: Sequence[int], rows: int, guests: int, present: Tensor | None
) -> Iterator[Tensor]:
    """For each pass, which guests hosts see of each row: (replicas, rows, guests). `present`: who has it at all."""
    slots = np.arange(rows)
    for number in range(1, settings.partial + 1):
        drawn = {seed: shown(seed, number, slots, guests, settings.guest_dropout) for seed in set(seeds)}
        seen = np.stack([drawn[seed] for seed in seeds])
        yield torch.from_numpy(seen if present is None else left(seen, present.numpy()))


def check_partial(s: Settings) -> None:
    """Refuses passes that nobody makes or in which nothing is hidden."""
    if s.partial < 0:
        raise UserError(f"partial {s.partial}: 0 or more is right")
    if not s.partial:
        return
    if s.hosts == 0 or s.host_model == "concatenate":
        raise UserError(
            f"partial {s.partial}: no host learns here, so the owner hides guests by itself (guest_dropout); 0 is right"
        )
    if not s.guest_dropout:
        raise UserError(f"partial {s.partial} with guest_dropout 0 hides nobody; a guest_dropout above 0 is right")
