import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dvfl.data.split.splits import hold_out, hold_out_by_subject, moments, standardise

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TABLES = arrays.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=FINITE)


@given(TABLES)
def test_any_finite_table_standardises_to_finite_numbers_within_the_root_of_its_rows(x):
    z = standardise(x, *moments(x))
    assert np.isfinite(z).all()
    assert np.abs(z).max() <= np.sqrt(len(x)) + 1e-6


@given(FINITE, st.integers(1, 10))
def test_a_constant_column_becomes_zero_whatever_its_value(value, rows):
    x = np.full((rows, 1), value)
    mean, std = moments(x)
    assert std[0] == 0
    assert (standardise(x, mean, std) == 0).all()


def test_moments_leave_missing_values_out():
    mean, std = moments(np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]]))
    assert mean.tolist() == [2.0, 0.0]
    assert std.tolist() == [1.0, 0.0]


def test_moments_are_the_population_ones():
    x = np.random.default_rng(0).normal(5e10, 3e9, (100, 3))
    mean, std = moments(x)
    assert np.allclose(mean, x.mean(axis=0), rtol=1e-12)
    assert np.allclose(std, x.std(axis=0, ddof=0), rtol=1e-12)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.floats(0.01, 0.99))
def test_held_out_rows_and_training_rows_are_all_rows_once(labels, fraction):
    train, test = hold_out(len(labels), np.array(labels), fraction)
    assert sorted([*train, *test]) == list(range(len(labels)))
    assert len(train) >= 1 and len(test) >= 1


def test_a_class_of_two_rows_is_on_both_sides():
    y = np.array([0] * 18 + [1] * 2)
    train, test = hold_out(len(y), y, 0.5)
    assert set(y[train]) == set(y[test]) == {0, 1}


@given(st.lists(st.integers(0, 20), min_size=2, max_size=60), st.integers(0, 2**32 - 1))
def test_no_subject_is_on_both_sides_whatever_the_rows_and_the_seed(subjects, seed):
    assume(len(set(subjects)) > 1)
    subjects = np.array(subjects)
    train, test = hold_out_by_subject(subjects, subjects % 2, seed)
    assert not set(subjects[train]) & set(subjects[test])
    assert sorted([*train, *test]) == list(range(len(subjects)))


def test_another_seed_holds_out_other_rows():
    draws = {tuple(hold_out(100, np.arange(100) % 2, seed=seed)[1]) for seed in range(30)}
    assert len(draws) == 30


@pytest.mark.parametrize("rows_each", [1, 3])
def test_a_subject_is_on_one_side_only(rows_each):
    subjects = np.repeat(np.arange(40), rows_each)
    y = subjects % 2
    train, test = hold_out_by_subject(subjects, y)
    assert not set(subjects[train]) & set(subjects[test])
    assert len(train) == 32 * rows_each and len(test) == 8 * rows_each
    assert y[test].mean() == 0.5
