"""Entity alignment and augmentation: who gives which entity's row to which sample."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dvfl.align.entities import queues, samples

PRESENCE = arrays(bool, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=30))


def drawn(present: np.ndarray, seed: int = 0) -> np.ndarray:
    return queues(present, np.random.default_rng(seed))


@settings(deadline=None)
@given(present=PRESENCE, seed=st.integers(0, 9))
def test_every_guest_gives_rows_that_it_has_and_each_once(present: np.ndarray, seed: int) -> None:
    for guest, given_by in enumerate(drawn(present, seed).T):
        assert present[given_by, guest].all()
        assert len(set(given_by.tolist())) == len(given_by)


@settings(deadline=None)
@given(present=PRESENCE)
def test_aligned_entities_come_first_and_artificial_ones_are_made_of_others(present: np.ndarray) -> None:
    aligned, artificial = samples(present)
    queue = drawn(present)
    assert queue.shape == (aligned + artificial, present.shape[1])
    assert (queue[:aligned] == np.flatnonzero(present.all(1))[:, None]).all()
    assert not present[queue[aligned:]].all(2).any()


@settings(deadline=None)
@given(present=PRESENCE)
def test_it_ends_when_a_guest_has_nothing_left(present: np.ndarray) -> None:
    assert len(drawn(present)) == present.sum(0).min()


def test_every_seed_puts_entities_together_anew() -> None:
    present = np.eye(3, dtype=bool).repeat(20, 0)
    assert (drawn(present, 0) != drawn(present, 1)).any()
    assert (drawn(present, 0) == drawn(present, 0)).all()
