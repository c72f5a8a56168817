"""Keyed randomness: a draw depends on its seed and its purpose, never on what was drawn before it.

A replica therefore meets the same luck alone, inside a stack of hundreds, and in a real federation.
"""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Key = str | int
PATTERNS = 4096  # of a bank: a row's luck is the number of one of them, and a round costs a gather


def numpy_generator(seed: int, *key: Key) -> np.random.Generator:
    """A counter-based generator of its own for every (seed, key)."""
    digest = hashlib.blake2b(repr((seed, *key)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def torch_generator(seed: int, *key: Key) -> torch.Generator:
    """The same for PyTorch, always on the CPU so that every device sees the same numbers."""
    generator = torch.Generator()
    generator.manual_seed(bits(seed, *key))
    return generator


def bits(seed: int, *key: Key) -> int:
    """63 bits of its own for every (seed, key)."""
    digest = hashlib.blake2b(repr((seed, *key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def batches(rows: int, batch: int, seed: int, *key: Key) -> NDArray[np.int32]:
    """One epoch's row numbers in shuffled order, (iterations, batch).

    Every batch is full: the last one is completed with the first rows of the same shuffle, so that shapes never
    change inside an epoch and every row is seen.
    """
    order = numpy_generator(seed, *key).permutation(rows).astype(np.int32)
    iterations = -(-rows // batch)
    return np.concatenate([order, order[: iterations * batch - rows]]).reshape(iterations, batch)


def patterns(count: int, width: int, keep: float, seed: int, *key: Key) -> Tensor:
    """A bank of `count` random keep-masks, (count, width) of booleans, from which dropout draws its rows."""
    return torch.rand(count, width, generator=torch_generator(seed, *key)) < keep
