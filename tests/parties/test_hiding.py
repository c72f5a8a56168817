"""Guests that are hidden in a pass: the same wherever it is drawn, as often as asked for, and never all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dvfl.parties.pass_masks import left, shown

SEEDS = st.integers(0, 2**31)


@given(SEEDS, st.integers(1, 9), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=30), st.integers(1, 9))
def test_a_slot_is_shown_alike_whatever_is_drawn_beside_it(
    seed: int, number: int, slots: list[int], guests: int
) -> None:
    together = shown(seed, number, np.array(slots), guests, 0.4)
    for slot, marks in zip(slots, together, strict=True):
        assert (shown(seed, number, np.array([slot], np.int32), guests, 0.4)[0] == marks).all()


@given(SEEDS, st.integers(1, 6), st.floats(0, 0.999))
def test_some_guest_is_always_shown(seed: int, guests: int, probability: float) -> None:
    assert shown(seed, 1, np.arange(200), guests, probability).any(1).all()


def test_guests_are_hidden_as_often_as_asked_for_and_apart_from_each_other() -> None:
    hidden = ~shown(7, 1, np.arange(200_000), 4, 0.3)
    expected = 0.3 * (1 - 0.3**3)  # where all four would be hidden, none is
    np.testing.assert_allclose(hidden.mean(0), expected, atol=0.005)
    pairs = hidden[:, 0] & hidden[:, 1]
    np.testing.assert_allclose(pairs.mean(), 0.3**2 * (1 - 0.3**2), atol=0.005)


def test_seeds_and_passes_hide_others() -> None:
    slots = np.arange(1000)
    first = shown(1, 1, slots, 4, 0.5)
    for other in (shown(2, 1, slots, 4, 0.5), shown(1, 2, slots, 4, 0.5)):
        assert 0.4 < (first == other).mean() < 0.65


def test_known_marks_stay_as_they_are() -> None:
    """Parties of different versions must hide the same guests."""
    assert shown(3, 1, np.array([0, 1, 100_000]), 4, 0.5).astype(int).tolist() == [
        [0, 0, 1, 0],
        [1, 1, 0, 0],
        [1, 0, 1, 1],
    ]


def test_what_a_row_lacks_stays_absent_and_what_is_left_is_not_hidden() -> None:
    seen = np.array([[True, False], [False, True], [True, True]])
    present = np.array([[True, True], [True, False], [False, True]])
    assert left(seen, present).tolist() == [[True, False], [True, False], [False, True]]
