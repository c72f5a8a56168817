"""Learning rates over the steps of a training."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Schedule = Literal["constant", "cosine"]


def rates(schedule: Schedule, rate: float | Sequence[float], start: int, count: int, total: int) -> NDArray[np.float32]:
    """Learning rates of the steps `start` .. `start + count - 1` of `total`: (count,), or (count, rates) of several."""
    share = np.ones(count)
    if schedule == "cosine":
        share = 0.5 * (1 + np.cos(np.pi * (start + np.arange(count)) / total))
    return np.asarray(np.multiply.outer(share, rate), np.float32)
