"""Guests that a pass hides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.parties.hidden_guests import hidden

SLOTS = np.arange(20_000, dtype=np.int32)


@given(
    st.integers(0, 2**63 - 1),
    st.integers(1, 16),
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20, unique=True),
    st.integers(1, 6),
    st.floats(0, 0.999),
)
def test_a_rows_marks_follow_from_seed_pass_and_slot_and_never_hide_all(
    seed: int, number: int, slots: list[int], guests: int, probability: float
) -> None:
    together = hidden(seed, number, np.array(slots, np.int32), guests, probability)
    alone = [hidden(seed, number, np.array([slot], np.int32), guests, probability)[0] for slot in slots]
    np.testing.assert_array_equal(together, alone)
    assert not together.all(1).any()


@pytest.mark.parametrize("probability", [0.1, 0.3])
def test_each_guest_is_hidden_as_often_as_was_asked(probability: float) -> None:
    marks = hidden(0, 1, SLOTS, 4, probability)
    np.testing.assert_allclose(marks.mean(0), probability, atol=0.012)
    assert abs(np.corrcoef(marks.T) - np.eye(4)).max() < 0.03


def test_passes_and_seeds_hide_others() -> None:
    first, second, other = hidden(0, 1, SLOTS, 4, 0.5), hidden(0, 2, SLOTS, 4, 0.5), hidden(1, 1, SLOTS, 4, 0.5)
    for one in (second, other):
        assert 0.4 < (first != one).mean() < 0.6
