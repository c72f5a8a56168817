"""A host that was killed, or has lost its tables, its disk or what a stream held."""

import numpy as np
from lone_host import PLAN, frozen, hello, made, made_plan, message, opened, sweep, swept, tell, write
from world import MemoryStorage

from dvfl.federation.protocol.wire import Chunk, Collect, Sweep, Welcome


def test_a_host_that_concatenates_gives_the_same_after_a_restart() -> None:
    disk, plan = MemoryStorage(), made_plan(host_model="concatenate")
    before = frozen(storage=disk, plan=plan)
    after = opened(disk)
    assert after.frozen == before.frozen
    ask = Collect(PLAN.run, before.frozen, 0)
    one, other = before.collect(ask), after.collect(ask)
    assert isinstance(one, Chunk) and isinstance(other, Chunk)
    np.testing.assert_array_equal(one.values, other.values)


def test_it_goes_on_where_it_saved() -> None:
    disk = MemoryStorage()
    host = made(disk)
    write(host, message())
    host.train(3)
    host.save()
    again = opened(disk)
    assert (again.steps, again.resumed_from_step, again.restarts) == (3, 3, 1)
    assert again.place("guest-1") == ("stream", 1)
    assert again.status(now_ms=1).guests["guest-1"].held == 48
    assert again.guests["guest-1"].lineage == 5


def test_a_host_whose_tables_were_lost_asks_for_a_refill_and_freezes_to_the_same_hash() -> None:
    disk = MemoryStorage()
    before = frozen(storage=disk)
    disk.tables.clear()
    again = opened(disk)
    assert not again.frozen
    for guest in again.guests:
        answer = again.hello(guest, hello(guest))
        assert isinstance(answer, Welcome) and answer.refill
    swept(again)
    again.settle(now_ms=1)
    assert again.frozen == before.frozen
    answer = again.hello("guest-1", hello("guest-1"))
    assert isinstance(answer, Welcome) and not answer.refill


def test_a_stream_that_lost_its_messages_makes_it_ask_for_a_refill_until_that_has_come() -> None:
    host = made()
    write(host, message())
    host.lost("guest-1", "another stream")
    answer = host.hello("guest-1", hello("guest-1"))
    assert isinstance(answer, Welcome) and answer.refill
    write(host, message(epoch=2, sweep=Sweep(0, 1, "e" * 64, "a" * 64)))
    answer = host.hello("guest-1", hello("guest-1"))
    assert isinstance(answer, Welcome) and not answer.refill
    assert not answer.swept


def test_a_frozen_host_whose_tables_were_lost_does_not_freeze_without_them_though_the_owner_collects() -> None:
    disk = MemoryStorage()
    before = frozen(storage=disk)
    disk.tables.clear()
    again = opened(disk)
    again.tell(tell(phase="collect", revision=2), now_ms=10**9)
    again.settle(now_ms=10**9)
    assert not again.frozen
    swept(again)
    again.settle(now_ms=10**9)
    assert again.frozen == before.frozen


def test_a_host_that_lost_its_disk_after_the_training_asks_for_all_and_freezes_with_it() -> None:
    host = opened()
    host.tell(tell(phase="collect", revision=2), now_ms=0)
    host.settle(now_ms=1)
    assert not host.frozen
    answer = host.hello("guest-1", hello("guest-1"))
    assert isinstance(answer, Welcome) and answer.refill
    for guest in ("guest-2", "guest-3"):
        host.hello(guest, hello(guest))
    swept(host)
    host.settle(now_ms=2)
    assert host.frozen


def test_parts_of_a_sweep_by_two_processes_are_no_whole_sweep() -> None:
    host = made()
    first, _ = sweep("guest-1")
    _, second = sweep("guest-1", incarnation=101)
    write(host, first, second)
    assert not host.guests["guest-1"].whole
    write(host, *sweep("guest-1", incarnation=101))
    assert host.guests["guest-1"].whole


def test_the_stream_is_read_anew_where_a_guest_comes_with_a_new_lineage() -> None:
    host = made()
    write(host, message())
    assert host.place("guest-1") == ("stream", 1)
    host.hello("guest-1", hello("guest-1", lineage=6, incarnation=200))
    assert host.place("guest-1") == ("stream", 0)
