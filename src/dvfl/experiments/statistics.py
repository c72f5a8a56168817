"""The tables' statistics: the paper's filter and spread for cells, paired tests on all seeds for comparisons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

_LEVEL = 0.95  # of intervals
_NOTHING = 1e-9  # smaller than any difference between accuracies in percent; what is below is rounding


@dataclass(frozen=True)
class Comparison:
    """Ours minus theirs over seeds that both have: the mean, its 95 % interval, the two-sided paired t-test."""

    difference: float
    low: float
    high: float
    p: float
    n: int


def kept(values: Sequence[float]) -> list[float]:
    """The values without those beyond 1.5 interquartile ranges outside the quartiles (the caption of Table 1)."""
    if not values:
        return []
    first, third = np.percentile(values, [25, 75])
    reach = 1.5 * (third - first)
    return [value for value in values if first - reach <= value <= third + reach]


def summary(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and twice the sample standard deviation of what the filter keeps; the latter 0 for one value."""
    left = kept(_known(values))
    if not left:
        return None, None
    return float(np.mean(left)), 2 * float(np.std(left, ddof=1)) if len(left) > 1 else 0.0


def interval(values: Sequence[float | None]) -> tuple[float, float] | None:
    """The 95 % t interval of the mean of all values; None below two."""
    known = _known(values)
    if len(known) < 2:
        return None
    mean, error = float(np.mean(known)), _standard_error(known)
    reach = error * float(special.stdtrit(len(known) - 1, (1 + _LEVEL) / 2))
    return mean - reach, mean + reach


def compare(ours: Mapping[int, float | None], theirs: Mapping[int, float | None]) -> Comparison | None:
    """Pairs the values by seed; None where fewer than two seeds have both."""
    differences = []
    for seed, mine in ours.items():
        other = theirs.get(seed)
        if mine is not None and other is not None:
            differences.append(mine - other)
    bounds = interval(differences)
    if bounds is None:
        return None
    difference, error = float(np.mean(differences)), _standard_error(differences)
    if error > _NOTHING:
        p = 2 * float(special.stdtr(len(differences) - 1, -abs(difference) / error))
    else:
        p = 1.0 if abs(difference) <= _NOTHING else 0.0
    return Comparison(difference, *bounds, p, len(differences))


def holm(p: Sequence[float]) -> list[float]:
    """The p values adjusted for their number by Holm's step-down rule, in the order given."""
    adjusted, highest = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda place: p[place])):
        highest = max(highest, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = highest
    return adjusted


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))
