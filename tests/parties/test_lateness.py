"""Late messages, against registers that are written message by message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dvfl.parties.faults.lateness import BLOCK, FullPost, Lags, Lateness, Post, lags
from dvfl.parties.memory.registers import NEVER, Register, Stamp, held

Numbers = NDArray[np.int64]
GUESTS, HOSTS = ["guest-1", "guest-2"], ["host-1", "host-2"]
LATE = st.integers(0, 4)
LATENESS = st.none() | st.builds(Lateness, LATE, LATE, LATE)


def numbered(rounds: int, replicas: int = 1, first: int = 0) -> Numbers:
    """Everybody sends in every round."""
    shape = (rounds, replicas, len(HOSTS), len(GUESTS))
    return np.broadcast_to(first + np.arange(rounds)[:, None, None, None], shape)


def some(rounds: int, replicas: int, seed: int) -> Numbers:
    """Messages of which a third are lost."""
    sent = numbered(rounds, replicas)
    return np.where(np.random.default_rng(seed).random(sent.shape) < 2 / 3, sent, NEVER)


def post(*lateness: Lateness | None) -> Post:
    return Post(Lags(lateness, range(len(lateness)), GUESTS, HOSTS))


def one_by_one(sent: Numbers, lateness: Lateness, seed: int, link: str) -> list[list[int]]:
    """The numbers that one link brings in each round, copy by copy."""
    arrivals: list[list[int]] = [[] for _ in range(len(sent) + lateness.longest)]
    for t, number in enumerate(sent):
        if number != NEVER:
            first, second = lags(lateness, seed, link, t // BLOCK)[:, t % BLOCK]
            arrivals[t + first].append(int(number))
            if lateness.duplicate:
                arrivals[t + second].append(int(number))
    return arrivals[: len(sent)]


@settings(deadline=None)
@given(st.lists(LATENESS, min_size=1, max_size=3), st.integers(1, 20), st.integers(0, 99))
def test_registers_hold_what_they_would_hold_if_every_copy_were_written(
    lateness: list[Lateness | None], rounds: int, seed: int
) -> None:
    sent = some(rounds, len(lateness), seed)
    holding = held(post(*lateness).deliver(sent), np.full((1, 1, 1), NEVER))
    for replica, host, guest in np.ndindex(sent.shape[1:]):
        link = f"{GUESTS[guest]}>{HOSTS[host]}"
        arrivals = one_by_one(sent[:, replica, host, guest], lateness[replica] or Lateness(), replica, link)
        register: Register[int] = Register()
        for t, numbers in enumerate(arrivals):
            for number in numbers:
                register.write(Stamp(0, 0, number), number)
            assert holding[t, replica, host, guest] == (NEVER if register.read() is None else register.read())


@settings(deadline=None)
@given(LATENESS, st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_it_does_not_matter_how_the_rounds_are_cut(lateness: Lateness | None, parts: list[int]) -> None:
    sent = some(sum(parts), 1, 0)
    whole = post(lateness).deliver(sent)
    pieces = post(lateness)
    cuts = np.split(sent, np.cumsum(parts)[:-1])
    np.testing.assert_array_equal(whole, np.concatenate([pieces.deliver(piece) for piece in cuts]))


def test_it_does_not_matter_how_the_rounds_are_cut_where_blocks_of_luck_meet() -> None:
    sent = some(2 * BLOCK + 10, 1, 0)
    pieces = post(Lateness(1, 3, 2))
    cuts = np.split(sent, [5, BLOCK - 1, BLOCK, BLOCK + 1])
    whole = post(Lateness(1, 3, 2)).deliver(sent)
    np.testing.assert_array_equal(whole, np.concatenate([pieces.deliver(piece) for piece in cuts]))


def test_every_block_of_rounds_has_its_own_luck() -> None:
    late, sent = Lateness(1, 3, 2), some(2 * BLOCK + 10, 1, 0)
    arrivals = one_by_one(sent[:, 0, 1, 0], late, 0, "guest-1>host-2")
    expected = [max(numbers, default=NEVER) for numbers in arrivals]
    assert post(late).deliver(sent)[:, 0, 1, 0].tolist() == expected


def test_rounds_are_counted_where_nothing_is_late_too() -> None:
    tested = post(None)
    tested.deliver(numbered(3))
    tested.deliver(numbered(4))
    assert int(tested.state()["round"]) == 7


def test_without_lateness_everything_arrives_at_once() -> None:
    sent = some(10, 2, 0)
    tested = post(None, Lateness())
    assert tested.longest == 0
    np.testing.assert_array_equal(tested.deliver(sent), sent)


def test_delayed_messages_arrive_that_many_rounds_later() -> None:
    sent = some(10, 1, 0)
    arrived = post(Lateness(delay=3)).deliver(sent)
    assert (arrived[:3] == NEVER).all()
    np.testing.assert_array_equal(arrived[3:], sent[:-3])


def test_what_is_still_on_its_way_arrives_in_the_next_call() -> None:
    tested = post(Lateness(delay=3))
    tested.deliver(numbered(2))
    nothing = np.full_like(numbered(3), NEVER)
    np.testing.assert_array_equal(tested.deliver(nothing)[:, 0, 0, 0], [NEVER, 0, 1])
    np.testing.assert_array_equal(tested.deliver(nothing), nothing)


def test_reordered_messages_are_late_by_every_number_of_rounds_up_to_the_longest() -> None:
    first, second = lags(Lateness(delay=5, reorder=3), 0, "guest-1>host-1", 0)
    assert np.bincount(first, minlength=9)[5:] == pytest.approx([BLOCK / 4] * 4, rel=0.2)
    assert first.min() == 5
    np.testing.assert_array_equal(first, second)


def test_a_second_copy_comes_up_to_the_longest_after_the_first() -> None:
    first, second = lags(Lateness(delay=5, reorder=3, duplicate=4), 0, "guest-1>host-1", 0)
    after = second - first
    assert np.bincount(after, minlength=5)[1:] == pytest.approx([BLOCK / 4] * 4, rel=0.2)
    assert after.min() == 1


def test_duplicates_alone_change_nothing_that_a_register_holds() -> None:
    sent = some(30, 1, 0)
    never = np.full((1, 1, 1), NEVER)
    arrived = post(Lateness(duplicate=4)).deliver(sent)
    assert not np.array_equal(arrived, sent)
    np.testing.assert_array_equal(held(arrived, never), held(sent, never))


def test_a_replica_meets_the_same_luck_alone_and_in_a_stack() -> None:
    sent = some(30, 3, 0)
    together = post(Lateness(1), None, Lateness(0, 4, 4)).deliver(sent)
    alone = Post(Lags([Lateness(0, 4, 4)], [2], GUESTS, HOSTS)).deliver(sent[:, 2:])
    np.testing.assert_array_equal(together[:, 2:], alone)
    np.testing.assert_array_equal(together[:, 1], sent[:, 1])


def test_seeds_links_and_blocks_have_luck_of_their_own() -> None:
    late = Lateness(reorder=1)
    rows = [lags(late, *key)[0] for key in ((0, "a>x", 0), (1, "a>x", 0), (0, "b>x", 0), (0, "a>y", 0), (0, "a>x", 1))]
    for number, row in enumerate(rows):
        for later in rows[number + 1 :]:
            assert 0.4 < (row == later).mean() < 0.6


def test_the_longest_is_the_sum_of_all_and_that_of_the_latest_replica() -> None:
    assert Lateness(1, 2, 3).longest == 6
    assert post(None, Lateness(1, 2, 3), Lateness(4)).longest == 6


@pytest.mark.parametrize("before", [0, 7, BLOCK])
def test_restored_post_goes_on_as_the_other_would(before: int) -> None:
    one, other = (post(Lateness(1, 3, 2), None) for _ in range(2))
    one.deliver(some(before, 2, 0))
    other.deliver(some(11, 2, 1))  # what happened there is forgotten
    state = one.state()
    after = numbered(20, 2, before)
    expected = one.deliver(after)
    other.restore(state)
    np.testing.assert_array_equal(other.deliver(after), expected)


def test_who_changes_an_answer_does_not_change_what_is_on_its_way() -> None:
    one, other = (post(Lateness(delay=2)) for _ in range(2))
    one.deliver(numbered(1))[:] = 99
    other.deliver(numbered(1))
    np.testing.assert_array_equal(one.deliver(numbered(5)), other.deliver(numbered(5)))


# Every message, not only the newest.


def full_post(*lateness: Lateness | None) -> FullPost:
    return FullPost(Lags(lateness, range(len(lateness)), GUESTS, HOSTS))


def brought(arrived: Numbers, *link: int) -> list[list[int]]:
    """The numbers that one link brings in each round."""
    return [[number for number in at_once[(slice(None), *link)].tolist() if number != NEVER] for at_once in arrived]


@settings(deadline=None)
@given(st.lists(LATENESS, min_size=1, max_size=3), st.integers(1, 20), st.integers(0, 99))
def test_every_copy_arrives_in_its_round_from_old_to_new(
    lateness: list[Lateness | None], rounds: int, seed: int
) -> None:
    sent = some(rounds, len(lateness), seed)
    arrived = full_post(*lateness).deliver(sent)
    for replica, host, guest in np.ndindex(sent.shape[1:]):
        link = f"{GUESTS[guest]}>{HOSTS[host]}"
        copies = one_by_one(sent[:, replica, host, guest], lateness[replica] or Lateness(), replica, link)
        assert brought(arrived, replica, host, guest) == [sorted(set(numbers)) for numbers in copies]


@settings(deadline=None)
@given(LATENESS, st.lists(st.integers(1, 7), min_size=1, max_size=5), st.booleans())
def test_every_message_arrives_however_the_rounds_are_cut_and_whoever_goes_on(
    lateness: Lateness | None, parts: list[int], restored: bool
) -> None:
    sent, tested, pieces = some(sum(parts), 1, 0), full_post(lateness), []
    for piece in np.split(sent, np.cumsum(parts)[:-1]):
        if restored:
            state, tested = tested.state(), full_post(lateness)
            tested.restore(state)
        pieces += brought(tested.deliver(piece), 0, 1, 0)
    assert pieces == brought(full_post(lateness).deliver(sent), 0, 1, 0)
