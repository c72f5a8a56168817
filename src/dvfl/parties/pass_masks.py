"""Which guests hosts leave out when they encode a row once more, so that the owner learns to do without them.

A mark depends on the seed, the pass, the slot and the guest alone: hosts that never speak to each other hide the same.
"""

import numpy as np
from numpy.typing import NDArray

from dvfl.parties.numerics.randomness import bits

# Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): numbers from a counter, in any order.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST = np.uint64(31)


def shown(seed: int, number: int, slots: NDArray[np.integer], guests: int, probability: float) -> NDArray[np.bool_]:
    """The guests that pass `number`, from 1, shows of each slot: (slots, guests). Where none would be, all are."""
    counter: NDArray[np.uint64] = slots.astype(np.uint64)[:, None] * np.uint64(guests) + _numbers(guests)
    seen = _uniform(bits(seed, "hidden guests", number), counter) >= probability
    seen[~seen.any(1)] = True
    return seen


def left(seen: NDArray[np.bool_], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What a pass shows of rows that some guests lack, (.., rows, guests); those there are where nothing would be."""
    both = seen & present
    return np.where(both.any(-1, keepdims=True), both, present)


def _uniform(key: int, counter: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A number from 0 to below 1 for each count."""
    with np.errstate(over="ignore"):  # arithmetic is modulo 2^64
        z = np.uint64(key) + counter * _STEP
        for shift, factor in _MIX:
            z = (z ^ (z >> shift)) * factor
    return ((z ^ (z >> _LAST)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _numbers(guests: int) -> NDArray[np.uint64]:
    return np.arange(1, guests + 1, dtype=np.uint64)
