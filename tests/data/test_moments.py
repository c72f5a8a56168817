"""Means and deviations of parts, merged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dvfl.data.split.moments import Moments

VALUES = st.one_of(st.just(np.nan), st.sampled_from([0.0, 1.0, -3.5]), st.floats(-1e9, 1e9))


def merged(x: NDArray[np.float64], cuts: list[int]) -> Moments:
    """The moments of x from its parts, one after the other."""
    parts = np.split(x, sorted(cut % (len(x) + 1) for cut in cuts))
    found = Moments.of(x[:0])
    for part in parts:
        found = found.merged(Moments.of(part))
    return found


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30), st.lists(st.integers(0, 100), max_size=5))
def test_parts_give_what_the_whole_gives(rows: list[tuple[float, float]], cuts: list[int]) -> None:
    x = np.array(rows)
    whole, parts = Moments.of(x), merged(x, cuts)
    for name in ("count", "low", "high"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    size = np.nanmax(np.abs(x), initial=1.0)  # rounding is relative to the values, not to their spread
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-9, atol=1e-14 * size)
    np.testing.assert_allclose(parts.std, whole.std, rtol=1e-9, atol=1e-14 * size)
    np.testing.assert_array_equal(parts.scales()[1] > 0, whole.scales()[1] > 0)


def test_a_million_rows_in_a_thousand_parts_agree_to_nine_digits() -> None:
    x = np.random.default_rng(0).normal([0, 1e6, 1.7e9], [1, 1, 3600], (1_000_000, 3))  # the last: seconds since 1970
    mean, std = merged(x, list(range(0, len(x), 1000))).scales()
    np.testing.assert_allclose(mean, x.mean(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(std, x.std(axis=0), rtol=1e-9)


def test_the_largest_numbers_do_not_overflow() -> None:
    x = np.array([[1.7e308], [-1.7e308], [1.7e308], [1.7e308]])
    found = merged(x, [1, 2, 3])
    assert found.mean == pytest.approx(0.85e308)
    assert found.std == pytest.approx(1.7e308 * np.sqrt(0.75))


def test_equal_values_have_no_spread_however_they_are_cut() -> None:
    found = merged(np.full((1000, 1), 0.1), list(range(0, 1000, 7)))
    assert found.scales() == (0.0, 0.0)
