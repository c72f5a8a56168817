"""One host's own behaviour: what it believes, at whose pace it trains, when it freezes, what it gives away."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from lone_host import PLAN, ROWS, STEPS, frozen, hello, made, made_plan, message, opened, sweep, swept, tell, write

from dvfl.federation.protocol.wire import Chunk, Collect, Refused, Status, Welcome, encode

# What it believes.


def test_it_holds_what_a_guest_pushed() -> None:
    host = made()
    assert write(host, message()) == ["applied"]
    status = host.status(now_ms=2001)
    assert (status.guests["guest-1"].held, status.guests["guest-1"].age_s) == (48, 2.0)
    assert (status.guests["guest-2"].held, status.guests["guest-2"].age_s) == (0, -1.0)


def test_older_and_repeated_messages_change_nothing() -> None:
    host = made()
    newer = message(epoch=2, values=np.full((48, 4), 3.0, np.float32))
    assert write(host, newer, message(), newer) == ["applied", "superseded", "superseded"]
    assert host.counts["messages_superseded"] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"run": "1" * 32},
        {"guest": "guest-2"},
        {"lineage": 6},
        {"values": np.ones((48, 5), np.float32)},
        {"slots": ROWS + 100},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_does_not_fit_is_dropped_counted_and_logged_with_its_sender(change: dict[str, Any]) -> None:
    said: list[str] = []
    host = made(said=said)
    assert host.write("guest-1", encode(message(**change)), "stream", 1, now_ms=1) == "dropped"
    assert host.counts["messages_dropped"] == 1
    assert host.status(now_ms=1).guests["guest-1"].held == 0
    assert said[0].startswith("dropped a message from guest-1: ")


def test_a_flood_of_bad_messages_does_not_flood_the_log() -> None:
    said: list[str] = []
    host = made(said=said)
    for number in range(1000):
        host.write("guest-1", b"rubbish", "stream", number, now_ms=1)
    assert host.counts["messages_dropped"] == 1000
    assert len(said) == 10


def test_an_older_process_of_a_guest_is_told_that_it_is_fenced() -> None:
    host = made()
    answer = host.hello("guest-1", hello("guest-1", incarnation=99))
    assert isinstance(answer, Welcome) and answer.fenced
    assert host.guests["guest-1"].incarnation == 100


def test_a_guest_cannot_say_hello_for_another() -> None:
    assert isinstance(made().hello("guest-1", hello("guest-2")), Refused)


def test_who_is_not_in_the_plan_is_refused() -> None:
    answer = made().hello("guest-9", hello("guest-9"))
    assert isinstance(answer, Refused) and "a new run must name it" in answer.reason


def test_a_new_lineage_voids_what_the_old_one_sent() -> None:
    host = made()
    write(host, message())
    host.hello("guest-1", hello("guest-1", lineage=6, incarnation=200))
    assert host.status(now_ms=1).guests["guest-1"].held == 0
    assert write(host, message()) == ["dropped"]


def test_a_forged_plan_is_refused_and_a_replayed_one_changes_nothing() -> None:
    host = opened()
    assert isinstance(host.tell(tell(key=Ed25519PrivateKey.generate()), now_ms=0), Refused)
    assert host.state == "waiting"
    host.tell(tell(phase="collect", revision=7), now_ms=0)
    answer = host.tell(tell(revision=3), now_ms=0)
    assert isinstance(answer, Status) and answer.revision == 7


# At whose pace it trains.


def test_it_has_nothing_to_train_on_before_anything_came() -> None:
    assert made().allowed(now_ms=10**9) == 0


def test_it_makes_one_step_for_each_batch_of_the_guest_that_is_furthest_ahead() -> None:
    host = made()
    write(host, message(iteration=0))
    assert host.allowed(now_ms=1) == 1
    write(host, message("guest-2", epoch=2, iteration=1))
    assert host.allowed(now_ms=1) == 3 + 2
    host.train(5)
    assert host.allowed(now_ms=1) == 0


def test_after_a_silence_it_goes_on_alone() -> None:
    host = made()
    write(host, message(iteration=0), now_ms=1000)
    assert host.allowed(now_ms=1000 + 19_999) == 1
    assert host.allowed(now_ms=1000 + 20_000) == STEPS


def test_it_goes_on_when_all_guests_have_begun_their_sweep() -> None:
    host = made()
    for guest in host.guests:
        write(host, next(sweep(guest)))
    assert host.allowed(now_ms=1) == STEPS


def test_rows_that_are_only_ever_encoded_are_never_trained_on() -> None:
    host = swept(made())
    assert host._training is not None
    assert host._training.table.known == 48


# When it freezes.


def test_it_freezes_when_its_steps_are_spent_and_every_sweep_is_there() -> None:
    host = swept(made(), "guest-1", "guest-2")
    write(host, message("guest-3"))
    host.train(STEPS)
    host.settle(now_ms=10)
    assert not host.frozen
    swept(host, "guest-3")
    host.settle(now_ms=11)
    assert host.frozen


def test_it_freezes_at_the_deadline_without_those_who_are_late() -> None:
    host = swept(made(), "guest-1")
    host.settle(now_ms=5000)
    host.settle(now_ms=5000 + 59_999)
    assert not host.frozen
    host.settle(now_ms=5000 + 60_000)
    assert host.frozen


def test_it_freezes_when_the_owner_begins_to_collect() -> None:
    host = made()
    write(host, message())
    host.tell(tell(phase="collect", revision=2), now_ms=1)
    host.settle(now_ms=1)
    assert host.frozen


def test_nothing_that_comes_later_changes_a_frozen_host() -> None:
    host = frozen()
    before = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert write(host, message(incarnation=999, epoch=9)) == ["superseded"]
    after = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert isinstance(before, Chunk) and isinstance(after, Chunk)
    np.testing.assert_array_equal(before.values, after.values)


# What it gives away.


def test_chunks_hold_every_slot_once_and_say_who_is_in_them() -> None:
    host = frozen()
    status = host.status(now_ms=1)
    chunks = [host.collect(Collect(PLAN.run, host.frozen, number)) for number in range(status.chunks)]
    assert all(isinstance(chunk, Chunk) for chunk in chunks)
    assert sum(len(chunk.values) for chunk in chunks if isinstance(chunk, Chunk)) == 64
    assert all(chunk.present.all() for chunk in chunks if isinstance(chunk, Chunk))


def test_a_guest_that_never_came_is_absent_in_the_chunks() -> None:
    host = swept(made(), "guest-1", "guest-3")
    host.tell(tell(phase="collect", revision=2), now_ms=1)
    host.settle(now_ms=1)
    chunk = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert isinstance(chunk, Chunk)
    assert chunk.present[0].tolist() == [1, 0, 1]
    assert np.isfinite(chunk.values).all()


def test_a_guest_whose_sweep_is_not_whole_is_absent_in_every_row_even_where_it_is_held() -> None:
    host = swept(made(), "guest-1", "guest-3")
    write(host, message("guest-2"))
    host.tell(tell(phase="collect", revision=2), now_ms=1)
    host.settle(now_ms=1)
    chunk = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert isinstance(chunk, Chunk)
    assert not chunk.present[:, 1].any()
    assert chunk.present[:, 0].all()


@pytest.mark.parametrize(
    "change", [{"run": "1" * 32}, {"frozen": "0" * 64}, {"chunk": 10**6}], ids=lambda change: next(iter(change))
)
def test_it_refuses_what_it_cannot_give(change: dict[str, Any]) -> None:
    host = frozen()
    assert isinstance(host.collect(replace(Collect(PLAN.run, host.frozen, 0), **change)), Refused)


def test_a_host_that_is_not_frozen_gives_nothing() -> None:
    assert isinstance(swept(made()).collect(Collect(PLAN.run, "0" * 64, 0)), Refused)


@pytest.mark.parametrize("heard", [1, 2])
def test_a_host_that_learns_by_simclr_freezes_like_any_other(heard: int) -> None:
    host = made(plan=made_plan(host_objective="simclr"))
    values = np.random.default_rng(0).normal(size=(48, 4)).astype(np.float32)
    write(host, *(message(guest, values=values) for guest in list(host.guests)[:heard]))
    host.train(3)
    assert host.steps == 3
    swept(host)
    host.train(host.allowed(now_ms=1))
    host.settle(now_ms=1)
    assert host.frozen
    answer = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert isinstance(answer, Chunk) and np.isfinite(answer.values).all()


def test_a_host_that_concatenates_passes_on_what_it_holds_without_a_step() -> None:
    host = frozen(plan=made_plan(host_model="concatenate"))
    answer = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert host.steps == 0 and isinstance(answer, Chunk)
    assert answer.values.shape[1] == 4 * len(host.guests) and (answer.values == 2.0).all()


def test_in_concatenated_encodings_a_guest_whose_sweep_never_came_is_zero() -> None:
    host = made(plan=made_plan(host_model="concatenate"))
    write(host, message("guest-2"))
    swept(host, "guest-1")
    host.settle(now_ms=1)
    assert not host.frozen
    host.settle(now_ms=10**9)
    answer = host.collect(Collect(PLAN.run, host.frozen, 0))
    assert isinstance(answer, Chunk)
    assert (answer.values[:, :4] == 2.0).all() and not answer.values[:, 4:].any()
