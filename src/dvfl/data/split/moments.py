"""Mean and spread of a table's columns, also from parts of it: those of two parts can be merged."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

TINY = 1e-300  # a smaller spread cannot be divided by in float64


@dataclass(frozen=True)
class Moments:
    """What is known of each column, missing values left out; every array is (columns,)."""

    count: NDArray[np.int64]
    low: Matrix  # infinite where there is no value
    high: Matrix
    mean: Matrix
    std: Matrix  # of the population

    @classmethod
    def of(cls, x: NDArray[np.float64]) -> "Moments":
        """Those of the columns of x (rows, columns); NaN is missing."""
        missing = np.isnan(x)
        high = np.where(missing, -np.inf, x).max(axis=0, initial=-np.inf)
        low = np.where(missing, np.inf, x).min(axis=0, initial=np.inf)
        count = len(x) - missing.sum(axis=0)
        # Compared, not computed: the rounded mean of equal values may differ from them.
        varies = high > low
        # In units of the largest magnitude, so that squares of 1e200 do not overflow.
        unit = np.where(varies, np.maximum(np.abs(high), np.abs(low)), 1.0)
        z = np.where(varies, x / unit, 0.0)
        if len(x) == 0:
            return cls(count, low, high, np.zeros(x.shape[1]), np.zeros(x.shape[1]))
        mean = np.where(varies, np.nanmean(z, axis=0) * unit, np.where(count > 0, low, 0.0))
        return cls(count, low, high, mean, np.nanstd(z, axis=0) * unit)

    def merged(self, other: "Moments") -> "Moments":
        """Those of the rows of both."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        # Halves, and no squares: nothing overflows that is not itself out of range.
        gap = other.mean * 0.5 - self.mean * 0.5
        within = np.hypot(self.std * np.sqrt(1 - share), other.std * np.sqrt(share))
        return Moments(
            count,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.mean + gap * share + gap * share,
            np.hypot(within, 2 * np.sqrt(share * (1 - share)) * gap),
        )

    def scales(self) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation to standardise by; 0 and 0 where nothing varies."""
        varies = (self.high > self.low) & (self.std > TINY)
        return np.where(varies, self.mean, 0.0), np.where(varies, self.std, 0.0)
