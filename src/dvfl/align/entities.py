"""The paper's entity alignment and augmentation: which entity's row each guest gives to each of the owner's samples.

Artificial entities put rows of different labelled entities side by side, one of each guest, and average their labels.
"""

import numpy as np
from numpy.typing import NDArray


def queues(present: NDArray[np.bool_], draw: np.random.Generator) -> NDArray[np.int64]:
    """The queues of all guests, (samples, guests) of entity numbers, from who has which: (labelled entities, guests).

    First the entities that every guest has, in their order; then, as long as every guest has one left that it has not
    given, one of each, which `draw` chooses. A sample's label is the mean of its entities' one-hot labels.
    """
    everywhere = present.all(1)
    aligned = np.flatnonzero(everywhere)
    left = [draw.permutation(np.flatnonzero(own & ~everywhere)) for own in present.T]
    count = min((len(own) for own in left), default=0)
    artificial = np.stack([own[:count] for own in left], 1) if left else np.zeros((0, 0), np.int64)
    return np.concatenate([np.repeat(aligned[:, None], present.shape[1], 1), artificial])


def samples(present: NDArray[np.bool_]) -> tuple[int, int]:
    """How many of the owner's samples are aligned entities, and how many artificial ones."""
    everywhere = int(present.all(1).sum())
    return everywhere, int(present.sum(0).min(initial=len(present))) - everywhere
