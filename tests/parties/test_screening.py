"""Corrupt guests: who is named, how often nobody should have been, and data that are not as one would wish."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from dvfl.parties.faults.corruption import HOWS, How, corrupted
from dvfl.parties.screening import MOST, Screen, fit_screen

WIDTHS = (12, 8, 12, 10)
Batch = list[np.ndarray]


def encodings(seed: int, rows: int, widths: tuple[int, ...] = WIDTHS) -> Batch:
    """Guests that see parts of the same things, through a rectifier, and something of their own."""
    mixing = np.random.default_rng(99)
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(rows, 6))
    own = [hidden @ mixing.normal(size=(6, width)) + 1.0 for width in widths]
    return [np.maximum(z + draw.normal(size=z.shape), 0).astype(np.float32) for z in own]


def spoiled(batch: Batch, guest: int, how: How, seed: int = 0) -> Batch:
    code, generator = torch.from_numpy(batch[guest]), torch.Generator().manual_seed(seed)
    order, noise = torch.randperm(len(code), generator=generator), torch.randn(code.shape, generator=generator)
    return [values if g != guest else corrupted(code, how, order, noise).numpy() for g, values in enumerate(batch)]


def cut(whole: Batch, size: int) -> list[Batch]:
    return [[values[at : at + size] for values in whole] for at in range(0, len(whole[0]) - size + 1, size)]


def alarms(screen: Screen, batches: list[Batch], present: np.ndarray | None = None) -> float:
    """The share of batches in which somebody looks wrong."""
    size = len(batches[0][0])
    marks = [None if present is None else present[n * size : (n + 1) * size] for n in range(len(batches))]
    return float(np.mean([bool((screen.scores(b, m) > 1).any()) for b, m in zip(batches, marks, strict=True)]))


@pytest.fixture(scope="module")
def screen() -> Screen:
    return fit_screen(encodings(0, 6000))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("guest", range(4))
def test_a_corrupt_guest_is_named_and_nobody_else(screen: Screen, how: How, guest: int) -> None:
    batches = cut(encodings(1, 20 * 64), 64)
    named = [screen.suspects(spoiled(batch, guest, how, n)) for n, batch in enumerate(batches)]
    assert sum(found == [guest] for found in named) >= 19
    scores = [screen.scores(spoiled(batch, guest, how, n)) for n, batch in enumerate(batches)]
    assert min(score[guest] for score in scores) > max(screen.scores(batch)[guest] for batch in batches)


def test_a_wrong_guest_makes_others_look_wrong(screen: Screen) -> None:
    """Which is why suspects are left out one at a time."""
    scores = screen.scores(spoiled(encodings(1, 64), 0, "permute"))
    assert (scores > 1).sum() > 1


@pytest.mark.parametrize("size", [1, 2, 5, 16, 48, 64, 200])
def test_batches_of_any_size_alarm_as_rarely_as_they_should(screen: Screen, size: int) -> None:
    batches = cut(encodings(2, 600 * size), size)
    assert alarms(screen, batches) < 0.015  # one in 200, and three deviations of such a count


def test_larger_batches_alarm_less(screen: Screen) -> None:
    assert alarms(screen, cut(encodings(3, 100 * 4 * MOST), 4 * MOST)) <= 0.01


def test_rows_that_guests_lack_are_left_out(screen: Screen) -> None:
    whole, present = encodings(4, 300 * 64), np.random.default_rng(0).random((300 * 64, 4)) < 0.7
    for guest, values in enumerate(whole):
        values[~present[:, guest]] = np.nan  # whatever stands there
    assert alarms(screen, cut(whole, 64), present) < 0.02
    batch, marks = [values[:64] for values in whole], present[:64]
    assert screen.suspects(spoiled(batch, 2, "scale"), marks) == [2]


def test_guests_that_are_not_there_have_no_score_and_the_others_are_compared(screen: Screen) -> None:
    batches = cut(encodings(5, 300 * 64), 64)
    assert alarms(screen, [[a, None, c, d] for a, _, c, d in batches]) < 0.02  # type: ignore[list-item]
    a, _, c, d = spoiled(batches[0], 3, "permute")
    scores = screen.scores([a, None, c, d])
    assert np.isnan(scores[1]) and np.isfinite(scores[[0, 2, 3]]).all()
    assert screen.suspects([a, None, c, d]) == [3]
    assert screen.suspects([None, None, None, batches[0][3]]) == []
    assert screen.suspects([None, None, None, spoiled(batches[0], 3, "scale")[3]]) == [3]
    assert screen.suspects([None] * 4) == []


def test_two_corrupt_guests_are_both_named(screen: Screen) -> None:
    batch = spoiled(spoiled(encodings(6, 64), 0, "scale"), 2, "sign")
    assert screen.suspects(batch) == [0, 2]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_suspected_at_once(screen: Screen, value: float) -> None:
    batch = encodings(7, 64)
    batch[1][3, 0] = value
    assert screen.scores(batch)[1] == np.inf
    assert screen.suspects(batch) == [1]


def test_what_has_another_shape_is_suspected_at_once(screen: Screen) -> None:
    batch = encodings(7, 64)
    assert screen.suspects([batch[0][:, :5], *batch[1:]]) == [0]
    assert screen.suspects([*batch[:3], batch[3].ravel()[:64]]) == [3]


def test_huge_values_do_not_overflow(screen: Screen) -> None:
    batch = encodings(7, 64)
    batch[0] = np.full_like(batch[0], np.finfo(np.float32).max)
    assert screen.suspects(batch) == [0]


def test_rows_are_scored_one_by_one(screen: Screen) -> None:
    batch = encodings(8, 400)
    clean, wrong = screen.row_scores(batch), screen.row_scores(spoiled(batch, 1, "permute"))
    assert clean.shape == (400, 4) and (clean > 1).any(1).mean() < 0.02
    assert np.median(wrong[:, 1]) > 2 * np.median(clean[:, 1])
    alone = np.stack([screen.scores([values[[row]] for values in batch]) for row in range(20)])
    np.testing.assert_allclose(clean[:20], alone)


def test_constant_dimensions_are_no_trouble_until_they_move() -> None:
    train = encodings(0, 3000)
    for values in train:
        values[:, :3] = 0.5
    screen, batch = fit_screen(train), encodings(1, 64)
    for values in batch:
        values[:, :3] = 0.5
    assert screen.suspects(batch) == []
    assert screen.suspects(spoiled(batch, 2, "scale")) == [2]


def test_training_rows_may_lack_guests() -> None:
    train, present = encodings(0, 6000), np.random.default_rng(1).random((6000, 4)) < 0.7
    for guest, values in enumerate(train):
        values[~present[:, guest]] = np.nan
    screen = fit_screen(train, present)
    assert alarms(screen, cut(encodings(2, 400 * 64), 64)) < 0.02
    assert screen.suspects(spoiled(encodings(3, 64), 1, "permute")) == [1]


def test_guests_without_rows_in_common_are_judged_by_themselves() -> None:
    train, present = encodings(0, 4000), np.zeros((4000, 4), bool)
    present[np.arange(4000), np.arange(4000) % 4] = True
    screen = fit_screen(train, present)
    assert alarms(screen, cut(encodings(2, 300 * 64), 64)) < 0.02
    assert screen.suspects(spoiled(encodings(3, 64), 1, "sign")) == [1]
    assert screen.suspects(spoiled(encodings(3, 64), 1, "permute")) == []


def test_state_is_plain_arrays_from_which_the_same_screen_is_made(screen: Screen) -> None:
    again = Screen.from_state(load(save({key: np.ascontiguousarray(v) for key, v in screen.state().items()})))
    batch = spoiled(encodings(9, 40), 2, "noise")
    assert (again.scores(batch) == screen.scores(batch)).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 60), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 80), st.integers(0, 99))
def test_little_data_of_any_shape_have_scores(rows: int, widths: list[int], size: int, seed: int) -> None:
    screen = fit_screen(encodings(seed, rows, tuple(widths)))
    batch = encodings(seed + 1, size, tuple(widths))
    assert np.isfinite(screen.scores(batch)).all()
    assert set(screen.suspects(batch)) <= set(range(len(widths)))


def test_rows_with_something_in_common_raise_no_alarm(screen: Screen) -> None:
    """As when a batch is all one writer's: the mean moves, and what guests say of each other does not."""
    whole = encodings(11, 40_000)
    total = sum(values.sum(1) for values in whole)
    grouped = [values[np.argsort(total + np.random.default_rng(0).normal(size=len(total)) * 100)] for values in whole]
    assert alarms(screen, cut(grouped, 64)) < 0.018  # 0.024 without slack for means and sizes
