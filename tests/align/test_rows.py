"""Rows in an order that says nothing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.align.rows import Rows, ShuffledRows, Sizes
from dvfl.errors import UserError

KEY = bytes(range(64))
SETS = st.sets(st.binary(max_size=4), max_size=12)


@settings(max_examples=50, deadline=None)
@given(SETS, SETS, st.integers(1, 7), st.randoms(use_true_random=False))
def test_the_order_is_that_of_the_ids_whatever_that_of_the_file(train: Any, test: Any, pad: int, luck: Any) -> None:
    files = [Rows(list(train), list(test - train)), Rows(list(train), list(test - train))]
    for part in files[1]:
        luck.shuffle(part)
    first, second = (ShuffledRows(file, KEY, pad, "guest-1") for file in files)
    size = sum(first.sizes)
    assert first.ids(0, size) == second.ids(0, size)
    assert (first.digest, first.sizes) == (second.digest, second.sizes)
    # Every place's number, as if it were its slot, comes back to the row that stands there.
    slots = first.in_order(np.arange(size, dtype=np.int32))
    for part, of in zip(files[0], slots, strict=True):
        assert [first.ids(slot, slot + 1) for slot in of] == [[one] for one in part]
    assert all(slot < first.sizes.train for slot in slots.train) and all(
        slot >= first.sizes.train for slot in slots.test
    )


def test_sizes_are_rounded_up_with_rows_that_do_not_exist() -> None:
    rows = ShuffledRows(Rows([b"a", b"b", b"c"], [b"d"]), KEY, 4, "guest-1")
    assert rows.sizes == Sizes(4, 4)
    made_up = {*rows.ids(0, 8)} - {b"a", b"b", b"c", b"d"}
    assert len(made_up) == 4 and all(len(one) == 32 for one in made_up)
    assert ShuffledRows(Rows([], []), KEY, 4, "guest-1").sizes == Sizes(0, 0)


def test_another_key_makes_another_order_and_digest() -> None:
    rows = Rows([b"%d" % one for one in range(50)], [])
    first, second = (ShuffledRows(rows, key, 1, "guest-1") for key in (KEY, bytes(64)))
    assert first.ids(0, 50) != second.ids(0, 50) and first.digest != second.digest
    assert first.ids(0, 50) != list(rows.train)


def test_other_ids_have_another_digest() -> None:
    one, other = (ShuffledRows(Rows([b"a", last], []), KEY, 1, "guest-1") for last in (b"b", b"c"))
    assert one.digest != other.digest


def test_a_row_that_becomes_a_test_row_changes_the_digest() -> None:
    one, other = (ShuffledRows(rows, KEY, 1, "guest-1") for rows in (Rows([b"a", b"b"], []), Rows([b"a"], [b"b"])))
    assert one.digest != other.digest


def test_ids_in_both_parts_are_refused_with_their_number() -> None:
    with pytest.raises(UserError, match="guest-1: 2 ids are in its training rows and in its test rows"):
        ShuffledRows(Rows([b"a", b"b", b"c"], [b"c", b"a"]), KEY, 1, "guest-1")


def test_pieces_end_where_training_rows_end() -> None:
    assert Sizes(5, 3).pieces(2) == [(0, 2), (2, 4), (4, 5), (5, 7), (7, 8)]
    assert Sizes(0, 2).pieces(2) == [(0, 2)] and Sizes(0, 0).pieces(2) == []
