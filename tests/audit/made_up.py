"""Recordings that nobody trained: of a few numbers, with encodings of a known kind."""

from collections.abc import Callable

import torch
from torch import Tensor

from dvfl.audit.recordings.recording import GuestRecording, Recording, Rows

CLASSES = 4
Encode = Callable[[Tensor, torch.Generator], Tensor]  # columns (rows, columns) of a guest to encodings


def linear(x: Tensor, draw: torch.Generator) -> Tensor:
    """All there is, turned and stretched."""
    return x @ torch.randn(x.shape[1], x.shape[1] + 2, generator=draw)


def noise(x: Tensor, draw: torch.Generator) -> Tensor:
    """Nothing of what there is."""
    return torch.randn(len(x), x.shape[1] + 2, generator=draw)


def made_up(
    encode: Encode = linear,
    *,
    seeds: tuple[int, ...] = (0,),
    pool: int = 300,
    columns: tuple[int, ...] = (6, 6, 5),
    shift: float = 3.0,  # of one column by the class
    sure: float = 1.0,  # how much surer the outputs are of trained rows
    strategy: str = "dvfl",
) -> Recording:
    """Guests whose columns have nothing to do with each other's but a class that moves all of them."""
    draw = torch.Generator().manual_seed(0)
    rows = Rows(pool, 200, 200)
    y = torch.arange(rows.count) % CLASSES
    guests = []
    for number, width in enumerate(columns):
        x = torch.randn(rows.count, width, generator=draw)
        x[:, :CLASSES] += shift * torch.eye(CLASSES)[y]
        z = torch.stack([encode(x, torch.Generator().manual_seed(100 * seed + number)) for seed in seeds])
        guests.append(GuestRecording(f"guest-{number + 1}", x, z))
    outputs = torch.randn(len(seeds), rows.count, CLASSES, generator=draw) + 2 * torch.eye(CLASSES)[y]
    outputs[:, : rows.trained] *= sure
    return Recording(strategy, seeds, rows, tuple(guests), y, outputs)
