"""Which rows attackers know, and how rows are taken."""

import pytest
import torch
from made_up import made_up

from dvfl.audit.recordings.recording import at
from dvfl.errors import UserError


def test_fewer_known_rows_are_the_first_of_more() -> None:
    seen = made_up(seeds=(0, 1))
    many = seen.known(100, "a test")
    assert torch.equal(seen.known(30, "a test"), many[:, :30])
    assert not torch.equal(many[0], many[1])
    assert not torch.equal(many, seen.known(100, "another"))


def test_known_rows_are_of_the_pool_and_none_twice() -> None:
    seen = made_up()
    known = seen.known(seen.rows.pool, "a test")
    assert known[0].sort().values.tolist() == list(range(seen.rows.pool))


@pytest.mark.parametrize("count", [0, 10_000])
def test_more_known_rows_than_there_are_and_none_are_refused(count: int) -> None:
    with pytest.raises(UserError, match="from 1 to"):
        made_up().known(count, "a test")


def test_so_many_of_each_class_are_known_and_fewer_are_among_them() -> None:
    seen = made_up(seeds=(0, 1))
    many, few = (seen.known_of_each_class(count, "a test") for count in (6, 2))
    assert (at(seen.y, many).view(2, seen.classes, 6) == torch.arange(seen.classes)[:, None]).all()
    assert torch.equal(many.view(2, seen.classes, 6)[..., :2], few.view(2, seen.classes, 2))
    assert (many < seen.rows.pool).all()


def test_a_class_with_too_few_rows_is_filled_up_with_its_own() -> None:
    seen = made_up(pool=20)
    known = seen.known_of_each_class(20, "a test")
    assert (at(seen.y, known).view(seen.classes, 20) == torch.arange(seen.classes)[:, None]).all()


def test_a_class_that_nobody_can_know_is_refused() -> None:
    with pytest.raises(UserError, match="a class has no row"):
        made_up(pool=2).known_of_each_class(1, "a test")


def test_rows_are_taken_of_what_replicas_share_and_of_what_they_do_not() -> None:
    rows = torch.tensor([[2, 0], [1, 1]])
    assert at(torch.arange(3) * 10, rows).tolist() == [[20, 0], [10, 10]]
    own = torch.arange(12.0).view(2, 3, 2)
    assert at(own, rows).tolist() == [[[4, 5], [0, 1]], [[8, 9], [8, 9]]]


def test_victims_and_tests_lie_behind_the_pool() -> None:
    rows = made_up().rows
    assert (rows.victim.start, rows.test.start, rows.test.stop) == (rows.pool, rows.trained, rows.count)


def test_raw_columns_take_the_place_of_encodings() -> None:
    seen = made_up(seeds=(0, 1))
    raw = seen.raw()
    assert torch.equal(raw.guests[1].z[1], seen.guests[1].x)
    assert torch.equal(raw.joint()[0], torch.cat([guest.x for guest in seen.guests], 1))
