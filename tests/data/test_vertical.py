"""Rows that guests share, and rows that they do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.data.split.vertical import (
    ABSENT,
    GuestTable,
    VerticalData,
    intersection,
    limited_intersection,
    misaligned,
    with_absences,
)
from dvfl.errors import UserError

ROWS = 41
SEEDS = st.integers(0, 1000)


def numbered(guests: int = 3) -> VerticalData:
    """Row i of every guest holds the number i, and so does its label."""
    numbers = np.arange(ROWS, dtype=np.float32)[:, None]
    tables = tuple(GuestTable(f"guest-{g + 1}", numbers, numbers[:5]) for g in range(guests))
    return VerticalData("numbers", tables, np.arange(ROWS), np.arange(5), tuple(map(str, range(ROWS))))


@given(labelled=st.integers(1, ROWS - 3), seed=SEEDS)
def test_a_limited_intersection_gives_all_guests_the_labelled_rows_and_each_its_own_share(
    labelled: int, seed: int
) -> None:
    data = limited_intersection(numbered(), labelled, seed)
    common = set(data.y_train.tolist())
    own = [set(guest.train[:, 0].astype(int).tolist()) - common for guest in data.guests]
    assert len(common) == labelled
    assert all(len(rows) == (ROWS - labelled) // 3 == data.rows - labelled for rows in own)
    assert not (own[0] & own[1] or own[0] & own[2] or own[1] & own[2])


@given(labelled=st.integers(1, ROWS - 3), seed=SEEDS)
def test_an_intersection_has_every_label_beside_its_own_row(labelled: int, seed: int) -> None:
    for data in (limited_intersection(numbered(), labelled, seed), misaligned(numbered(), seed)):
        common = intersection(data)
        assert common.rows == len(common.y_train) == len(data.y_train)
        assert all((guest.train[:, 0] == common.y_train).all() for guest in common.guests)


def test_labelled_rows_are_drawn_anew_for_every_seed() -> None:
    one, other = (limited_intersection(numbered(), 8, seed).y_train.tolist() for seed in (0, 1))
    assert one != other


def test_misaligned_guests_have_the_same_rows_in_orders_of_their_own() -> None:
    data = misaligned(numbered(), 0)
    orders = [guest.train[:, 0].tolist() for guest in data.guests]
    assert orders[0] != orders[1] != orders[2]
    assert all(sorted(order) == list(range(ROWS)) for order in orders)


@pytest.mark.parametrize("labelled", [0, ROWS - 2])
def test_more_labelled_rows_than_there_are_is_refused(labelled: int) -> None:
    with pytest.raises(UserError, match=f"{labelled} labelled rows: from 1 to {ROWS - 3}"):
        limited_intersection(numbered(), labelled, 0)


@settings(deadline=None)
@given(share=st.floats(0, 0.95), seed=SEEDS)
def test_absences_leave_every_row_with_somebody_and_every_label_beside_its_own_row(share: float, seed: int) -> None:
    whole = numbered()
    data = with_absences(whole, share, seed)
    assert data.labelled is not None and data.tested is not None
    assert (data.labelled != ABSENT).any(0).all() and data.tested.any(0).all()
    for guest, where in zip(data.guests, data.labelled, strict=True):
        assert len(guest.train) == (where != ABSENT).sum()
        assert (guest.train[where[where != ABSENT], 0] == data.y_train[where != ABSENT]).all()
    assert data.gaps == (not data.complete.all() or not data.tested.all())


@settings(deadline=None)
@given(share=st.floats(0, 0.7), seed=SEEDS)
def test_an_intersection_leaves_out_labelled_rows_that_a_guest_lacks_and_says_so(share: float, seed: int) -> None:
    data = with_absences(numbered(), share, seed)
    common = intersection(data)
    assert len(common.y_train) == data.complete.sum() == common.rows
    assert all((guest.train[:, 0] == common.y_train).all() for guest in common.guests)
    assert ("labelled rows that every guest has" in common.note) == (not data.complete.all())


def test_the_rows_of_the_guest_that_has_most_count() -> None:
    data = with_absences(numbered(), 0.5, 0)
    assert data.rows == max(len(guest.train) for guest in data.guests) > min(len(guest.train) for guest in data.guests)
