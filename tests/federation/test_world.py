"""Whole runs of a federation under seeded outages, by deterministic simulation."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
from promises import check
from recording import arrays_in
from trouble import run, until_done
from virtual_loop import simulate
from world import World

from dvfl.errors import RunFailed
from dvfl.federation.protocol.wire import Ask, Refused, Welcome, decode

WORLDS = int(os.environ.get("DVFL_WORLDS", "1000"))  # seeded histories
BLOCK = 50  # of them in a test


def started(seed: int = 0, **change: Any) -> World:
    world = World(seed, **change)
    for name in world.names:
        world.start(name)
    return world


def history(world: World) -> list[Any]:
    """All that was said and is left."""
    pushed = [broker.acknowledged for broker in world.brokers.values()]
    left = [(disk.load(), disk.blobs) for disk in world.disks.values()]
    return [world.said, world.to_guests, pushed, repr(left), world.luck.random()]


def test_a_quiet_federation_finishes() -> None:
    async def story() -> World:
        world = started()
        await until_done(world)
        return world

    world = simulate(story)
    check(world)
    assert all(world.parties[name].counts["messages_dropped"] == 0 for name in world.names)


def test_hosts_that_concatenate_serve_an_owner_as_well() -> None:
    async def story() -> World:
        world = started(host_model="concatenate")
        await until_done(world)
        return world

    world = simulate(story)
    check(world)
    assert world.parties["owner"].score > 90


@pytest.mark.parametrize("seed", [0, 5, 17, 27])
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    assert history(run(seed)) == history(run(seed))


@pytest.mark.parametrize("block", range(-(-WORLDS // BLOCK)))
def test_it_finishes_whatever_dies_and_comes_back(block: int) -> None:
    for seed in range(BLOCK * block, min(WORLDS, BLOCK * (block + 1))):
        try:
            check(run(seed))
        except Exception as error:
            raise AssertionError(f"run({seed}): {error!r}") from error


def struck(strike: Callable[[World, str], None], name: str, moment: float) -> World:
    """A run in which something happens to one party, which is started again two seconds later."""

    async def story() -> World:
        world = started()
        await asyncio.sleep(moment)
        strike(world, name)
        await asyncio.sleep(2.0)
        world.start(name)
        await until_done(world)
        return world

    return simulate(story)


@pytest.mark.parametrize("name", ["guest-1", "host-1", "owner"])
@pytest.mark.parametrize("moment", [0.3, 1.0, 2.0, 4.0, 8.0])
def test_it_finishes_when_one_is_killed_at_any_moment(name: str, moment: float) -> None:
    check(struck(World.kill, name, moment))


@pytest.mark.parametrize("moment", [0.5, 1.5, 3.0, 6.0])
@pytest.mark.parametrize("name", ["guest-1", "host-1"])
def test_it_finishes_when_one_loses_its_disk(name: str, moment: float) -> None:
    world = struck(World.lose_disk, name, moment)
    assert not world.failed
    assert world.finished


def test_a_guest_that_lost_its_weights_begins_a_new_lineage_and_its_old_encodings_are_forgotten() -> None:
    async def story() -> tuple[World, int]:
        world = started(guest_epochs=30)
        await asyncio.sleep(2.0)
        before = world.parties["guest-1"].lineage
        world.lose_disk("guest-1")
        world.start("guest-1")
        await until_done(world)
        return world, before

    world, before = simulate(story)
    check(world)
    for host in world.hosts:
        assert world.parties[host].guests["guest-1"].lineage != before
        assert world.disks[host].tables["guest-1"].incarnations.min() == world.parties["guest-1"].incarnation


def test_one_guest_and_one_host_dead_for_ever_do_not_stop_the_others() -> None:
    async def story() -> World:
        world = started(sweep_deadline_s=30.0, phase1_deadline_s=120.0)
        await asyncio.sleep(1.5)
        world.kill("guest-2")
        world.kill("host-2")
        await until_done(world)
        return world

    world = simulate(story)
    assert not world.failed
    assert world.finished
    assert [known.whole for known in world.owner.collected.values()] == [True]


def test_without_a_quorum_the_owner_ends_and_says_who_is_missing() -> None:
    async def story() -> World:
        world = started(quorum_hosts=2, phase1_deadline_s=60.0)
        await asyncio.sleep(1.0)
        world.kill("host-2")
        await until_done(world)
        return world

    world = simulate(story)
    assert isinstance(world.failed["owner"], RunFailed)
    assert "missing: host-2" in str(world.failed["owner"])


def test_a_second_process_of_a_guest_fences_the_first() -> None:
    async def story() -> World:
        world = started()
        await asyncio.sleep(1.0)
        first = world.running["guest-1"]
        world.start_twin("guest-1")
        await until_done(world)
        assert first.done()
        return world

    world = simulate(story)
    check(world)
    assert world.fenced == ["guest-1"]


def test_a_second_process_of_the_owner_fences_the_first() -> None:
    async def story() -> World:
        world = started()
        await asyncio.sleep(1.0)
        first = world.running["owner"]
        world.start_twin("owner")
        await asyncio.sleep(3.0)
        assert first.done()
        await until_done(world)
        return world

    world = simulate(story)
    check(world)
    assert world.fenced == ["owner"]


def test_a_lost_store_of_a_broker_is_refilled() -> None:
    async def story() -> World:
        world = started()
        await asyncio.sleep(1.0)
        world.brokers["host-1"].lose()
        world.disks["host-1"].tables.clear()
        world.kill("host-1")
        world.start("host-1")
        await until_done(world)
        return world

    check(simulate(story))


def test_nothing_with_a_floating_point_array_ever_goes_to_a_guest() -> None:
    world = run(11)
    assert world.to_guests
    for data in world.to_guests:
        message = decode(data, Welcome, Refused, Ask)
        assert arrays_in(message) == (["slots"] if isinstance(message, Ask) else [])
