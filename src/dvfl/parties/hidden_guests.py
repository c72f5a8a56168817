"""Which guests a pass over rows hides: the same ones at every host, without a word between them."""

import numpy as np
from numpy.typing import NDArray

from dvfl.parties.randomness import bits

_WEYL = np.uint64(0x9E3779B97F4A7C15)  # the constants of splitmix64


def hidden(seed: int, number: int, slots: NDArray[np.integer], guests: int, probability: float) -> NDArray[np.bool_]:
    """Marks (rows, guests), each with that probability, by seed, number of the pass and slot; never all of a row.

    Where luck would hide all guests, the one that came closest to being seen is.
    """
    keys = np.array([bits(seed, "hidden guests", number, guest) for guest in range(guests)], np.uint64)
    mixed = _mixed(_mixed(slots.astype(np.uint64))[:, None] + keys)
    luck = (mixed >> np.uint64(11)) * 2.0**-53  # from 0 to below 1
    marks: NDArray[np.bool_] = luck < probability
    marks[np.arange(len(slots)), luck.argmax(1)] &= ~marks.all(1)
    return marks


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of splitmix64 for each number: a draw depends on the slot alone, not on what was drawn before."""
    numbers = numbers + _WEYL
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
