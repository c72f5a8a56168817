"""The tables' statistics: the paper's filter and spread for cells, paired tests on all seeds for comparisons.

A comparison has two tests of whether the two sides differ: Student's t on the differences, and Wilcoxon's signed ranks,
which no outlier breaks. Its p is twice the smaller of the two, which allows for there being two. A third test asks
whether the mean difference is inside a margin (two one-sided t-tests), so that "level" is a finding of its own.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from scipy import special

Verdict: TypeAlias = Literal["ahead", "level", "behind", "open"]

Name = TypeVar("Name", bound=Hashable)

SIGNIFICANT = 0.05  # Holm-adjusted p below which a test's answer counts
MARGIN = 0.1  # points; a mean difference that is shown to be smaller is level
LEAST_PAIRS = 6  # with fewer, no outcome of the rank test is significant, and nothing is tested

_LEVEL = 0.95  # of intervals
_NOTHING = 1e-9  # smaller than any difference between accuracies in percent; what is below is rounding


@dataclass(frozen=True)
class Comparison:
    """Ours minus theirs over seeds that both have, with nothing left out; too few pairs have no p."""

    difference: float  # the mean
    low: float  # its 95 % interval, Student's t
    high: float
    n: int
    t_p: float | None  # two-sided paired t-test
    rank_p: float | None  # Wilcoxon's signed-rank test, exact
    level_p: float | None  # that the mean is not inside the margin

    @property
    def p(self) -> float | None:
        """Of the two sides being alike, by the stronger of the two tests, doubled since there are two."""
        return None if self.t_p is None or self.rank_p is None else min(1.0, 2 * min(self.t_p, self.rank_p))


@dataclass(frozen=True)
class Judgement:
    """What a comparison says among others of its table; its p values are adjusted for their number."""

    comparison: Comparison
    adjusted_p: float | None
    adjusted_level_p: float | None

    @property
    def verdict(self) -> Verdict:
        """Ahead or behind where the sides are told apart, level where the margin holds, and open where neither is."""
        if self.adjusted_p is not None and self.adjusted_p < SIGNIFICANT:
            return "ahead" if self.comparison.difference > 0 else "behind"
        return "level" if self.adjusted_level_p is not None and self.adjusted_level_p < SIGNIFICANT else "open"


def kept(values: Sequence[float]) -> list[float]:
    """The values without those beyond 1.5 interquartile ranges outside the quartiles (the caption of Table 1)."""
    if not values:
        return []
    first, third = np.percentile(values, [25, 75])
    reach = 1.5 * (third - first) + _NOTHING  # a value on a fence is kept, however fractions are rounded
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
    return compare_differences([*differences(ours, theirs).values()])


def differences(ours: Mapping[int, float | None], theirs: Mapping[int, float | None]) -> dict[int, float]:
    """Ours minus theirs, of the seeds that have both."""
    pairs = {seed: (mine, theirs.get(seed)) for seed, mine in ours.items()}
    return {seed: mine - other for seed, (mine, other) in pairs.items() if mine is not None and other is not None}


def pooled(each: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Differences of several columns as one for each seed that all of them have: their mean."""
    seeds = [seed for seed in each[0] if all(seed in column for column in each)]
    return {seed: float(np.mean([column[seed] for column in each])) for seed in seeds}


def compare_differences(values: Sequence[float]) -> Comparison | None:
    """The tests of paired differences; None for fewer than two."""
    bounds = interval(values)
    if bounds is None:
        return None
    mean, error, freedom = float(np.mean(values)), _standard_error(values), len(values) - 1
    if len(values) < LEAST_PAIRS:
        return Comparison(mean, *bounds, len(values), None, None, None)
    return Comparison(
        mean,
        *bounds,
        len(values),
        t_p=min(1.0, 2 * _tail(-abs(mean), error, freedom)),
        rank_p=_signed_ranks(values),
        level_p=max(_tail(mean - MARGIN, error, freedom), _tail(-mean - MARGIN, error, freedom)),
    )


def judge(comparisons: Mapping[Name, Comparison], same: Mapping[Name, Hashable]) -> dict[Name, Judgement]:
    """Every comparison among the others of a table.

    `same` gives comparisons of the same numbers the same key: they are one test, and counted once.
    """
    tested = {same[name]: one for name, one in comparisons.items() if one.p is not None}
    p = dict(zip(tested, holm([one.p for one in tested.values() if one.p is not None]), strict=True))
    level = dict(zip(tested, holm([one.level_p for one in tested.values() if one.level_p is not None]), strict=True))
    return {name: Judgement(one, p.get(same[name]), level.get(same[name])) for name, one in comparisons.items()}


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


def _tail(value: float, error: float, freedom: int) -> float:
    """How likely Student's t is below `value` in units of its `error`."""
    if error > _NOTHING:
        return float(special.stdtr(freedom, value / error))
    return 0.5 if abs(value) <= _NOTHING else float(value > 0)


def _signed_ranks(values: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's test over all signs of these ranks; ties share a rank, zeros are left out."""
    known = np.round([value for value in values if abs(value) > _NOTHING], 9)
    if not known.size:
        return 1.0
    _, place, count = np.unique(np.abs(known), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(count) - count + 1)[place]  # twice the mean rank: whole numbers
    ways = np.ones(1)  # how many choices of signs give each sum of positive ranks
    for rank in doubled:
        longer = np.zeros(len(ways) + rank)
        longer[: len(ways)] += ways
        longer[rank:] += ways
        ways = longer
    total = int(doubled.sum())
    apart = abs(2 * int(doubled[known > 0].sum()) - total)
    return float(ways[np.abs(2 * np.arange(total + 1) - total) >= apart].sum() / ways.sum())
