"""Statistics of tables: the paper's filter, paired tests, Holm's correction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dvfl.reproduce.outcome.statistics import (
    LEAST_PAIRS,
    MARGIN,
    compare,
    compare_differences,
    holm,
    interval,
    judge,
    kept,
    pooled,
    summary,
)

ACCURACY = st.floats(0, 100).map(lambda value: round(value, 2))
MANY = st.lists(ACCURACY, min_size=1, max_size=40)
P_VALUES = st.lists(st.floats(0, 1), max_size=30)


def test_a_value_far_outside_the_quartiles_is_left_out() -> None:
    assert kept([97.8, 97.9, 98.0, 97.7, 12.0]) == [97.8, 97.9, 98.0, 97.7]


def test_a_value_exactly_on_the_fence_is_kept() -> None:
    # Quartiles 1 and 3: the fences are -2 and 6.
    assert kept([0.0, 1.0, 2.0, 3.0, 6.0]) == [0.0, 1.0, 2.0, 3.0, 6.0]
    assert kept([0.0, 1.0, 2.0, 3.0, 6.01]) == [0.0, 1.0, 2.0, 3.0]


@given(MANY)
def test_the_filter_keeps_the_middle_half_and_invents_nothing(values: list[float]) -> None:
    left = kept(values)
    assert left and set(left) <= set(values)
    first, third = np.percentile(values, [25, 75])
    assert [value for value in left if first <= value <= third] == [
        value for value in values if first <= value <= third
    ]


def test_a_summary_is_the_mean_and_twice_the_sample_standard_deviation() -> None:
    assert summary([97.0, None, 98.0, 99.0, None]) == (98.0, 2.0)


def test_one_value_has_no_spread_and_none_has_no_summary() -> None:
    assert summary([97.5]) == (97.5, 0.0)
    assert summary([None, None]) == summary([]) == (None, None)


def test_a_summary_is_taken_after_the_filter() -> None:
    assert summary([97.8, 97.9, 98.0, 97.7, 12.0]) == summary([97.8, 97.9, 98.0, 97.7])


@given(st.lists(ACCURACY, min_size=2, max_size=40).filter(lambda values: np.ptp(values) > 0.1))
def test_the_interval_is_scipys(values: list[float]) -> None:
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval([*values, None]) == pytest.approx((expected.low, expected.high))


def test_an_interval_needs_two_values() -> None:
    assert interval([97.0, None]) is None
    assert interval([97.0, 97.0]) == (97.0, 97.0)


@given(st.lists(st.tuples(ACCURACY, ACCURACY), min_size=2, max_size=40))
def test_a_comparison_is_scipys_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    differences = np.subtract(ours, theirs)
    found = compare(dict(enumerate(ours)), dict(enumerate(theirs)))
    assert found is not None and found.n == len(pairs)
    assert found.difference == pytest.approx(differences.mean())
    if np.ptp(differences) > 0.005:
        expected = stats.ttest_rel(ours, theirs)
        bounds = expected.confidence_interval(0.95)
        assert (found.t_p is None) == (len(pairs) < LEAST_PAIRS)
        if found.t_p is not None:
            assert found.t_p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
        assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high), abs=1e-9)


@given(st.lists(st.tuples(ACCURACY, ACCURACY), min_size=2, max_size=20))
def test_a_comparison_turned_round_has_the_same_p(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = (dict(enumerate(values)) for values in zip(*pairs, strict=True))
    one, other = compare(ours, theirs), compare(theirs, ours)
    assert one is not None and other is not None
    assert (one.difference, one.low) == pytest.approx((-other.difference, -other.high))
    if one.p is not None:
        assert (one.t_p, one.rank_p, one.level_p) == pytest.approx((other.t_p, other.rank_p, other.level_p))


def test_seeds_are_paired_by_number_and_those_of_one_side_are_left_out() -> None:
    found = compare({0: 98.0, 1: 97.0, 2: None, 5: 10.0}, {1: 96.5, 2: 90.0, 0: 97.0, 4: 20.0})
    assert found is not None and found.n == 2 and found.difference == pytest.approx(0.75)


def test_fewer_than_two_pairs_cannot_be_compared() -> None:
    assert compare({0: 98.0, 1: None}, {0: 97.0, 1: 97.0}) is None
    assert compare({0: 98.0, 1: 97.0}, {2: 98.0, 3: 97.0}) is None


def test_differences_that_are_all_equal_are_certain() -> None:
    values = {seed: 97.0 + seed / 10 for seed in range(6)}
    same = compare(values, values)
    assert same is not None and (same.difference, same.p, same.level_p) == (0.0, 1.0, 0.0)
    # 0.3 everywhere, but for the rounding of binary fractions.
    ahead = compare({seed: value + 0.3 for seed, value in values.items()}, values)
    assert ahead is not None and (ahead.t_p, ahead.level_p) == (0.0, 1.0) and ahead.low == pytest.approx(0.3)


def test_fewer_than_six_pairs_have_an_interval_and_no_p() -> None:
    found = compare_differences([0.4, 0.5, 0.6])
    assert found is not None and found.p is found.t_p is found.rank_p is found.level_p is None
    assert (found.low, found.difference) == pytest.approx((0.2516, 0.5), abs=1e-4)


@given(st.lists(st.integers(-30, 30), min_size=6, max_size=12))
def test_the_rank_test_counts_all_signs_ties_and_zeros_included(hundredths: list[int]) -> None:
    values = [value / 100 for value in hundredths]
    found = compare_differences(values)
    assert found is not None
    known = np.array([value for value in hundredths if value])
    if not len(known):
        assert found.rank_p == 1.0
        return
    ranks = stats.rankdata(np.abs(known))
    signs = (np.arange(2 ** len(known))[:, None] >> np.arange(len(known))) & 1
    sums, mean = signs @ ranks, ranks.sum() / 2
    apart = abs(ranks[known > 0].sum() - mean)
    assert found.rank_p == pytest.approx(np.mean(np.abs(sums - mean) >= apart - 1e-9))


def test_the_rank_test_is_scipys_where_no_ranks_are_tied() -> None:
    values = [0.3, -0.1, 0.4, 0.9, 0.25, 0.6, -0.2, 0.8]
    found = compare_differences(values)
    assert found is not None and found.rank_p == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)


def test_ten_wins_of_ten_are_told_apart_however_far_off_some_are() -> None:
    values = [0.5, 0.6, 0.4, 0.5, 60.0, 0.7, 0.5, 80.0, 0.6, 0.4]
    found = compare_differences(values)
    assert found is not None and found.t_p is not None and found.t_p > 0.05  # outliers break the t-test
    assert judge({"one": found}, {"one": "one"})["one"].verdict == "ahead"


@given(st.lists(st.floats(-0.3, 0.3), min_size=6, max_size=30).filter(lambda values: np.ptp(values) > 1e-3))
def test_level_is_two_one_sided_tests(values: list[float]) -> None:
    found = compare_differences(values)
    below = stats.ttest_1samp(values, MARGIN, alternative="less").pvalue
    above = stats.ttest_1samp(values, -MARGIN, alternative="greater").pvalue
    assert found is not None and found.level_p == pytest.approx(max(below, above), rel=1e-6, abs=1e-12)


def test_verdicts_tell_level_from_open() -> None:
    close, wide = ([scale * value for value in (1, -1, 2, -2, 1, -1, 2, -2)] for scale in (0.01, 1.0))
    found = {"close": compare_differences(close), "wide": compare_differences(wide)}
    known = {name: one for name, one in found.items() if one is not None}
    judged = judge(known, {name: name for name in known})
    assert {name: one.verdict for name, one in judged.items()} == {"close": "level", "wide": "open"}


def test_comparisons_of_the_same_numbers_count_once() -> None:
    one = compare_differences([0.2, 0.1, 0.3, 0.2, 0.1, 0.25])
    other = compare_differences([0.1, -0.1, 0.2, -0.2, 0.1, -0.15])
    assert one is not None and other is not None and one.p is not None
    found = {"a": one, "b": one, "c": one, "d": other}
    judged = judge(found, {"a": "x", "b": "x", "c": "x", "d": "d"})
    assert judged["a"].adjusted_p == judged["c"].adjusted_p == pytest.approx(2 * one.p)


def test_pooled_differences_are_means_of_the_seeds_that_all_columns_have() -> None:
    assert pooled([{0: 1.0, 1: 2.0, 2: 9.0}, {0: 3.0, 1: 0.0}]) == {0: 2.0, 1: 1.0}


def test_holms_rule_on_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(P_VALUES)
def test_holm_raises_p_values_at_most_to_bonferronis_and_keeps_their_order(p: list[float]) -> None:
    adjusted = holm(p)
    for value, raised in zip(p, adjusted, strict=True):
        assert value <= raised <= min(1.0, len(p) * value)
    order = np.argsort(p, kind="stable")
    assert all(np.diff(np.array(adjusted)[order]) >= 0)


@given(P_VALUES, st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_what_the_step_down_rule_rejects(p: list[float], level: float) -> None:
    rejected = set()
    for rank, place in enumerate(sorted(range(len(p)), key=lambda place: p[place])):
        if (len(p) - rank) * p[place] >= level:
            break
        rejected.add(place)
    assert {place for place, value in enumerate(holm(p)) if value < level} == rejected
