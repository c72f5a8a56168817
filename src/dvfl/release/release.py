"""What leaves a guest: encodings no longer than a bound, with Gaussian noise.

The noise is keyed, so that a simulation can be repeated. A real guest must draw it from a source that nobody can guess.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import Key, bits, torch_generator

_BLOCK = 1024  # rows whose noise is drawn together


class Sent(Protocol):
    """Which rows are encoded: the noise of each is its own."""

    def drawn(self, first: int, count: int, width: int, device: torch.device, seed: int, guest: int) -> Tensor:
        """Standard normals (count, width) for a guest's encodings of some of them."""


@dataclass(frozen=True)
class Origin:
    """Rows that have a number: their table, the same word for all guests, and their numbers in it."""

    table: str  # "train", "test", "copy 1" ..
    rows: NDArray[np.int64] | None = None  # None: all, in order

    def numbers(self, first: int, count: int) -> NDArray[np.int64]:
        """Of some of them."""
        return np.arange(first, first + count) if self.rows is None else self.rows[first : first + count]

    def drawn(self, first: int, count: int, width: int, device: torch.device, seed: int, guest: int) -> Tensor:
        """By each row's number."""
        return drawn_by_row(self.numbers(first, count), width, device, seed, guest, self.table)


@dataclass(frozen=True)
class Unnumbered:
    """Rows that are known by their values alone: the same values are sent with the same noise, in whatever company."""

    digests: tuple[str, ...]

    @classmethod
    def of(cls, tables: Sequence[NDArray[np.float32]]) -> "Unnumbered":
        """The rows of aligned tables, one a guest. All values of a row count: a guest's own may repeat often."""
        joint = np.concatenate(tables, 1) + np.float32(0)  # or minus zero would be another value
        return cls(tuple(hashlib.blake2b(row.tobytes(), digest_size=8).hexdigest() for row in joint))

    def drawn(self, first: int, count: int, width: int, device: torch.device, seed: int, guest: int) -> Tensor:
        """By each row's values; drawn on the CPU, so that a stored model says the same on every device."""
        drawn = torch.empty(count, width)
        for row, digest in zip(drawn, self.digests[first : first + count], strict=True):
            torch.randn(width, generator=torch_generator(seed, "released", guest, "values", digest), out=row)
        return drawn.to(device)


def released(z: Tensor, clip: float, noise: float, drawn: Tensor) -> Tensor:
    """Encodings (.., latent) as they are sent: rows longer than `clip` scaled down to it, then `noise * clip * drawn`.

    `drawn` is standard normal and shaped as `z`. The length is the Euclidean norm.
    """
    length = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    # Rows within the bound stay what they are, to the last bit.
    return torch.where(length > clip, z * (clip / length), z) + noise * clip * drawn


def drawn_once(shape: tuple[int, ...], device: torch.device, seed: int, *key: Key) -> Tensor:
    """Standard normals for one message, of their own for every (seed, key)."""
    return torch.randn(shape, generator=_generator(device, seed, *key), device=device)


def drawn_by_row(rows: NDArray[np.int64], width: int, device: torch.device, seed: int, *key: Key) -> Tensor:
    """Standard normals (rows, width) that depend on (seed, key) and on each row's number alone.

    A row that is asked for again is sent with the noise that it was first sent with, so nothing can be averaged.
    """
    drawn = torch.empty(len(rows), width, device=device)
    blocks = rows // _BLOCK
    for block in np.unique(blocks).tolist():
        generator = _generator(device, seed, *key, block)
        normals = torch.randn((_BLOCK, width), generator=generator, device=device)
        where = np.flatnonzero(blocks == block)
        drawn[torch.from_numpy(where).to(device)] = normals[torch.from_numpy(rows[where] % _BLOCK).to(device)]
    return drawn


def check_release(clip: float | None, noise: float) -> None:
    """Refuses bounds and noise that mean nothing."""
    if clip is not None and not 0 < clip < math.inf:
        raise UserError(f"clip {clip}: a number above 0 is right")
    if not 0 <= noise < math.inf:
        raise UserError(f"noise {noise}: 0 or more is right")
    if noise and clip is None:
        raise UserError(f"noise {noise} without clip: it is in units of clip, so both or neither are right")


def _generator(device: torch.device, seed: int, *key: Key) -> torch.Generator:
    """On the device itself: numbers are many, and differ between a CPU and a GPU."""
    generator = torch.Generator(device)
    generator.manual_seed(bits(seed, "released", *key))
    return generator
