"""What a host knows to be what its guests would answer, without asking them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_answering import ENCODER, NOW_MS, ORIGIN, SLOTS, answering, fresh
from test_host import PLAN, frozen, hello, tell

from dvfl.federation.host.freshness import LACKS, SAME, UNKNOWN, VOUCHED_S, Vouching
from dvfl.federation.host.frozen_answers import gathered, keep
from dvfl.federation.host.host import Frozen
from dvfl.federation.protocol.wire import Fresh, Here
from dvfl.federation.protocol.wire_types import CACHED, FRESH


def here(guest: str = "guest-1", **change: Any) -> Here:
    return replace(Here(guest, PLAN.run, ORIGIN, "done", 0.5, 10, 20), **change)


def told(host: Frozen, *guests: str, at_s: float = 10.0, **change: Any) -> Vouching:
    vouching = Vouching()
    for guest in guests:
        vouching.said(host, guest, here(guest, **change), at_s)
    return vouching


def test_rows_of_a_sweep_are_fresh_while_their_guest_says_that_it_would_make_the_same() -> None:
    host = answering(frozen())
    vouched = told(host, "guest-1").of(host, SLOTS, 10.5)
    assert vouched.marks[:, 0].tolist() == [SAME] * 3 and vouched.marks[:, 1].tolist() == [UNKNOWN] * 3
    assert vouched.counts.tolist() == [True, False, False]
    found = gathered(host, SLOTS, {}, vouched, now_ms=5001)
    assert found.states.tolist() == [[FRESH, CACHED, CACHED]] * 3
    assert found.ages.tolist() == [[0.5, 5.0, 5.0]] * 3


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "old"])
def test_a_word_that_is_old_or_was_followed_by_silence_makes_nothing_fresh_but_tells_the_age(silent: bool) -> None:
    host = answering(frozen())
    vouching = told(host, "guest-1")
    if silent:
        vouching.silent("guest-1")
    now_s = 10.25 if silent else 10.25 + VOUCHED_S
    vouched = vouching.of(host, SLOTS, now_s)
    assert not vouched.counts.any()
    found = gathered(host, SLOTS, {}, vouched, now_ms=5001)
    assert found.states[:, 0].tolist() == [CACHED] * 3 and found.ages[:, 0].tolist() == [now_s - 10] * 3
    assert vouching.since_all_s(host, now_s) == -1


@pytest.mark.parametrize("change", [{"origin": "b" * 64}, {"origin": ""}, {"run": "1" * 32}], ids=str)
def test_a_guest_with_other_weights_or_rows_vouches_for_nothing_that_is_held(change: dict[str, str]) -> None:
    host = answering(frozen())
    vouched = told(host, "guest-1", **change).of(host, SLOTS, 10.0)
    assert (vouched.marks == UNKNOWN).all()


def test_what_was_asked_for_is_known_from_then_on_and_so_is_what_the_guest_does_not_have() -> None:
    host = answering(frozen())
    vouching = told(host, "guest-1", origin="b" * 64)
    keep(host, {"guest-1": fresh(origin="b" * 64)}, NOW_MS)
    vouching.kept(host, SLOTS, fresh(origin="b" * 64))
    assert vouching.of(host, SLOTS, 10.0).marks[:, 0].tolist() == [LACKS, SAME, SAME]


def test_an_answer_made_from_something_else_than_the_last_word_says_is_known_to_be_nothing() -> None:
    host = answering(frozen())
    vouching = told(host, "guest-1")
    keep(host, {"guest-1": fresh(origin="b" * 64)}, NOW_MS)
    vouching.kept(host, SLOTS[1:], fresh(origin="b" * 64))
    assert vouching.of(host, SLOTS, 10.0).marks[:, 0].tolist() == [SAME, UNKNOWN, UNKNOWN]


def test_an_answer_that_the_table_did_not_take_is_asked_for_again() -> None:
    host = answering(frozen())
    vouching = told(host, "guest-1", origin="b" * 64)
    keep(host, {"guest-1": fresh()}, NOW_MS)
    newer = fresh(origin="b" * 64, values=np.full((2, 4), 11.0, np.float32))
    keep(host, {"guest-1": newer}, NOW_MS)  # in the same second
    vouching.kept(host, SLOTS[1:], newer)
    assert vouching.of(host, SLOTS, 10.0).marks[1:, 0].tolist() == [UNKNOWN, UNKNOWN]


def test_rows_that_were_asked_for_are_not_taken_for_those_of_the_sweep() -> None:
    host = answering(frozen())
    keep(host, {"guest-1": Fresh("guest-1", PLAN.run, ENCODER, "b" * 64, *fresh().slots[None], fresh().values)}, NOW_MS)
    assert told(host, "guest-1").of(host, SLOTS, 10.0).marks[:, 0].tolist() == [SAME, UNKNOWN, UNKNOWN]


def test_a_host_vouches_once_all_its_guests_do_and_for_as_long() -> None:
    host = answering(frozen())
    assert told(host, "guest-1", "guest-2").since_all_s(host, 10.5) == -1
    vouching = told(host, "guest-1", "guest-2")
    vouching.said(host, "guest-3", here("guest-3"), 10.25)
    assert vouching.since_all_s(host, 10.5) == 0.5
    assert vouching.since_all_s(host, 10.1 + VOUCHED_S) == -1
    vouching.said(host, "guest-3", here("guest-3", origin="b" * 64), 10.5)
    assert vouching.since_all_s(host, 10.5) == -1


def test_words_about_a_host_that_froze_anew_are_forgotten() -> None:
    party = frozen()
    host = answering(party)
    vouching = told(host, "guest-1")
    assert not vouching.of(replace(host, hash="1" * 64), SLOTS, 10.0).counts.any()
    party.tell(tell(phase="done", revision=3), now_ms=1)
    party.hello("guest-1", hello("guest-1", lineage=77, incarnation=200))
    vouching.said(answering(party), "guest-1", here(), 10.0)
    assert not vouching.of(host, SLOTS, 10.0).counts.any()
