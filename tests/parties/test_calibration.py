"""Temperatures by likelihood and expected calibration error, by hand and for any scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.parties.calibration import calibration_error, negative_log_likelihood, probabilities, temperature


def drawn(seed: int, rows: int, classes: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and labels drawn by the probabilities that they say."""
    draw = np.random.default_rng(seed)
    scores = draw.normal(size=(rows, classes)) * spread
    chances = probabilities(scores)
    return scores, (chances.cumsum(1) < draw.random((rows, 1))).sum(1).clip(max=classes - 1)


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_scores_that_are_too_large_by_a_factor_have_it_for_a_temperature(factor: float) -> None:
    scores, labels = drawn(0, 20_000, 5, 2.0)
    assert temperature(scores * factor, labels) == pytest.approx(factor, rel=0.05)


def test_two_rows_by_hand() -> None:
    """Scores (2, 0) right three times of four: most likely where the chance is 3/4, so 2 / T = log 3."""
    scores, labels = np.array([[2.0, 0.0]] * 4), np.array([0, 0, 0, 1])
    assert temperature(scores, labels) == pytest.approx(2 / math.log(3), rel=1e-3)


@given(st.integers(0, 1000), st.integers(1, 60), st.integers(2, 6), st.floats(0.01, 30))
def test_a_temperature_never_makes_labels_less_likely(seed: int, rows: int, classes: int, spread: float) -> None:
    draw = np.random.default_rng(seed)
    scores, labels = draw.normal(size=(rows, classes)) * spread, draw.integers(classes, size=rows)
    by = temperature(scores.astype(np.float32), labels)
    assert 0 < by < math.inf
    assert negative_log_likelihood(scores / by, labels) <= negative_log_likelihood(scores, labels) + 1e-5


@given(st.integers(0, 1000), st.floats(0.05, 50))
def test_a_temperature_changes_no_decision(seed: int, by: float) -> None:
    scores = np.random.default_rng(seed).normal(size=(30, 4))
    chances = probabilities(scores, by)
    assert (chances.argmax(1) == scores.argmax(1)).all()
    np.testing.assert_allclose(chances.sum(1), 1)


def test_rows_that_are_all_right_or_none_have_a_temperature_still() -> None:
    scores = np.array([[3.0, 0.0], [0.0, 3.0]])
    assert 0 < temperature(scores, np.array([0, 1])) < 1
    assert 1 < temperature(scores, np.array([1, 0])) < math.inf
    assert temperature(np.empty((0, 2)), np.empty(0, np.int64)) == 1
    assert temperature(np.zeros((3, 2)), np.array([0, 1, 0])) == 1


def test_large_scores_do_not_overflow() -> None:
    scores = np.array([[1e4, 0.0], [0.0, 1e4]], np.float32)
    assert np.isfinite(probabilities(scores)).all()
    assert negative_log_likelihood(scores, np.array([1, 1])) == pytest.approx(5e3)


def test_an_error_by_hand() -> None:
    """Four rows at 0.9, of which two are right, and one at 0.6 that is: (4 |0.9 - 0.5| + |0.6 - 1|) / 5."""
    chances = np.array([[0.9, 0.1]] * 4 + [[0.4, 0.6]])
    assert calibration_error(chances, np.array([0, 0, 1, 1, 1])) == pytest.approx((4 * 0.4 + 0.4) / 5)


def test_rows_of_one_bin_make_up_for_each_other_and_those_of_two_do_not() -> None:
    chances = np.array([[0.65, 0.35], [0.66, 0.34]])
    assert calibration_error(chances, np.array([0, 1])) == pytest.approx(abs(1.31 - 1) / 2)
    apart = np.array([[0.55, 0.45], [0.95, 0.05]])
    assert calibration_error(apart, np.array([0, 1])) == pytest.approx((0.45 + 0.95) / 2)


def test_certain_rows_that_are_right_have_no_error_and_wrong_ones_all() -> None:
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert calibration_error(certain, np.array([0, 1])) == 0
    assert calibration_error(certain, np.array([1, 0])) == 1
    assert calibration_error(np.empty((0, 2)), np.empty(0, np.int64)) == 0


@given(st.integers(0, 1000), st.integers(1, 50), st.integers(2, 5))
def test_an_error_lies_between_none_and_one_whatever_the_order_of_rows(seed: int, rows: int, classes: int) -> None:
    draw = np.random.default_rng(seed)
    chances, labels = probabilities(draw.normal(size=(rows, classes)) * 3), draw.integers(classes, size=rows)
    error = calibration_error(chances, labels)
    order = draw.permutation(rows)
    assert 0 <= error <= 1
    assert calibration_error(chances[order], labels[order]) == pytest.approx(error)


def test_probabilities_by_which_labels_were_drawn_have_hardly_any_error() -> None:
    scores, labels = drawn(1, 50_000, 4, 2.0)
    assert calibration_error(probabilities(scores), labels) < 0.01
    assert calibration_error(probabilities(scores * 4), labels) > 0.1
