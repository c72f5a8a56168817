"""Packed points and scalars."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.align.union.curve import BadPoint, are_points, hashed, inverse, multiplied, product, scalar, scalar_commitment

SALT = bytes(range(32))
IDENTITY = b"\1" + bytes(31)  # a point of small order
A, B = scalar(bytes(range(64))), scalar(bytes(range(64, 128)))


def test_scalars_may_be_applied_in_any_order() -> None:
    points = hashed([b"7", b"x"], SALT)
    once = multiplied(multiplied(points, A), B)
    assert once == multiplied(multiplied(points, B), A) == multiplied(points, product(A, B))
    assert multiplied(once, inverse(B)) == multiplied(points, A)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.binary(max_size=8), max_size=9), st.integers(1, 5))
def test_any_number_of_threads_gives_the_same_points(ids: list[bytes], threads: int) -> None:
    points = hashed(ids, SALT, threads)
    assert points == hashed(ids, SALT) and len(points) == 32 * len(ids)
    assert multiplied(points, A, threads) == multiplied(points, A)


def test_ids_and_salts_have_points_of_their_own() -> None:
    points = {hashed([one], salt) for one in (b"7", b"8", b"") for salt in (SALT, bytes(32))}
    assert len(points) == 6 and all(are_points(point) for point in points)


@pytest.mark.parametrize("wrong", [IDENTITY, b"\2" + bytes(31), b"\xff" * 32, bytes(31), bytes(33)])
def test_what_is_not_in_the_group_is_refused(wrong: bytes) -> None:
    assert not are_points(wrong)
    with pytest.raises(BadPoint):
        multiplied(hashed([b"7"], SALT) + wrong, A, 2)


def test_commitments_tell_scalars_and_sessions_apart() -> None:
    assert scalar_commitment(A, SALT) == scalar_commitment(A, SALT)
    assert len({scalar_commitment(of, salt) for of in (A, B) for salt in (SALT, os.urandom(32))}) == 4
