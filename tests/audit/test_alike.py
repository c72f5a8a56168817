"""Guests of equal shape as one stack."""

import pytest
import torch
from made_up import linear, made_up

from dvfl.audit.readers.alike import alike, by_nothing, by_ridge, explained


def test_guests_of_equal_shape_are_one_group_and_others_their_own() -> None:
    groups = alike(made_up(seeds=(0, 1), columns=(6, 5, 6)))
    assert [group.members for group in groups] == [(0, 2), (1,)]
    assert groups[0].seeds == (0, 0, 1, 1)
    assert groups[0].z.shape[0] == 4


def test_known_pairs_belong_to_the_same_guest_replica_and_row() -> None:
    seen = made_up(seeds=(0, 1), columns=(6, 5, 6))
    rows = torch.tensor([[3, 9, 4], [8, 1, 0]])
    z, x = alike(seen)[0].known(rows)
    for element, (replica, guest) in enumerate([(0, 0), (0, 2), (1, 0), (1, 2)]):
        assert torch.equal(z[element], seen.guests[guest].z[replica, rows[replica]])
        assert torch.equal(x[element], seen.guests[guest].x[rows[replica]])


def test_what_guests_have_is_given_to_each_of_their_elements() -> None:
    group = alike(made_up(seeds=(0, 1, 2), columns=(6, 6)))[0]
    assert group.each(torch.tensor([[10], [20]])).flatten().tolist() == [10, 20] * 3


def test_linear_encodings_explain_all_and_the_mean_of_known_rows_nothing() -> None:
    seen = made_up(linear, seeds=(0, 1))
    known = seen.known(100, "a test")
    assert explained(seen, known, by_ridge) == pytest.approx((1, 1), abs=1e-3)
    assert explained(seen, known, by_nothing) == pytest.approx((0, 0), abs=0.05)


def test_what_stands_beside_guests_of_a_group_is_theirs_and_as_wide_as_the_widest() -> None:
    seen = made_up(seeds=(0, 1), columns=(6, 5, 6))
    beside = [torch.full((2, seen.rows.count, width), float(width)) for width in (3, 9, 4)]
    made = alike(seen)[0].stacked(beside)
    assert made.shape == (4, seen.rows.count, 4)
    assert made[:, 0].tolist() == [[3, 3, 3, 0], [4, 4, 4, 4]] * 2
