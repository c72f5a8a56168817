"""Whole runs of a federation under seeded outages, by deterministic simulation."""

import asyncio
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from world import World, simulate, unapplied

from dvfl.errors import RunFailed
from dvfl.federation.guest import Fenced
from dvfl.federation.line import REQUEST_S
from dvfl.federation.wire import decode

WORLDS = int(os.environ.get("DVFL_WORLDS", "150"))  # seeded histories; thousands are for those who can wait

LONGEST = REQUEST_S + 1.0  # an answer's deadline, and a little for what is done around it


async def until_done(world: World, seconds: float = 1500) -> None:
    loop = asyncio.get_running_loop()
    while not world.finished and not world.failed and loop.time() < seconds:
        await asyncio.sleep(0.5)


async def trouble(world: World, seed: int, seconds: float) -> None:
    """Every second, anyone and anything may die or come back; after a while all come back for good."""
    luck, loop = random.Random(seed), asyncio.get_running_loop()
    down, up = luck.choice([(0.02, 0.5), (0.1, 0.3), (0.3, 1.0), (0.05, 0.05)])
    dead: set[str] = set()
    while loop.time() < seconds:
        await asyncio.sleep(luck.uniform(0.2, 1.0))
        for name in world.names:
            if name in dead and luck.random() < up:
                dead.discard(name)
                world.start(name)
            elif name not in dead and luck.random() < down:
                world.kill(name)
                dead.add(name)
                if luck.random() < 0.3:  # at once again
                    dead.discard(name)
                    world.start(name)
        for broker in world.brokers.values():
            broker.up = luck.random() < up if not broker.up else luck.random() >= down
            if not broker.up and luck.random() < 0.1:
                broker.lose()
        for link in world.links:
            world.links[link] = luck.random() < up if not world.links[link] else luck.random() >= down
    for broker in world.brokers.values():
        broker.up = True
    world.links = dict.fromkeys(world.links, True)
    for name in world.names:
        world.start(name)


def run(seed: int, seconds: float = 20.0) -> World:
    async def story() -> World:
        world = started(seed)
        await trouble(world, seed, seconds)
        await until_done(world)
        return world

    return simulate(story)


def started(seed: int = 0, **change: Any) -> World:
    world = World(seed, **change)
    for name in world.names:
        world.start(name)
    return world


def check(world: World, told: str = "") -> None:
    """What every run must keep, whatever happened in it."""
    assert not world.failed, f"{told} {world.failed}"
    assert world.finished, f"{told} {[world.parties[name].state for name in world.names]}"
    assert world.owner.score is not None and world.owner.score > 70, f"{told} {world.owner.score}"
    assert not unapplied(world), f"{told} {unapplied(world)}"
    waits = {name: world.parties[name].longest_wait_s for name in world.names}
    assert max(waits.values()) <= LONGEST, f"{told} {waits}"


def test_a_quiet_federation_finishes() -> None:
    world = run(0, 0.0)
    check(world)
    assert all(world.parties[name].counts["messages_dropped"] == 0 for name in world.names)


def test_the_same_seed_gives_the_same_history() -> None:
    one, other = run(5), run(5)
    assert one.luck.random() == other.luck.random()
    for name in one.hosts:
        assert one.parties[name].frozen == other.parties[name].frozen


@pytest.mark.parametrize("block", range(WORLDS // 10))
def test_it_finishes_whatever_dies_and_comes_back(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        check(run(seed), f"seed {seed}:")


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
        await asyncio.sleep(40.0)  # until the first says hello again
        assert first.done()
        return world

    world = simulate(story)
    assert isinstance(world.failed.pop("guest-1"), Fenced)


def test_a_second_process_of_the_owner_fences_the_first() -> None:
    async def story() -> World:
        world = started()
        await asyncio.sleep(1.0)
        first = world.running["owner"]
        world.start_twin("owner")
        await asyncio.sleep(3.0)
        assert first.done()
        failed = world.failed.pop("owner")
        await until_done(world)
        assert isinstance(failed, Fenced)
        return world

    check(simulate(story))


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
        message = decode(data)
        arrays = [value for name in message.__dataclass_fields__ if hasattr(value := getattr(message, name), "dtype")]
        assert not arrays
