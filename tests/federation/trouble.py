"""Seeded histories: everybody and everything in a simulated federation may die, at any moment, and come back."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType

import pytest
from promises import check_midway
from subject import Size
from virtual_loop import simulate
from world import World

from dvfl.federation.guest import guest_service, guest_training
from dvfl.federation.host import host_answers, host_service, host_training
from dvfl.federation.owner import owner_service

_LARGE_EVERY = 200  # of so many worlds one is as large as a default one, and at the parties' own pace
_SMALL = Size(rows=12, test_rows=6, batch=6, guest_epochs=2, host_epochs=2, owner_epochs=4)
_QUICK: dict[ModuleType, dict[str, float]] = {  # in small worlds more happens in a second, and in smaller parts
    guest_training: {"PACKED": 0},  # a batch a message
    host_training: {"CHUNK": 160},  # a few rows a chunk
    guest_service: {"_OFTEN_S": 0.5, "_SELDOM_S": 3.0, "_AGAIN_S": 2.0},
    host_service: {"_IDLE_S": 0.1, "_SAVE_S": 2.0},
    host_answers: {"_LOOK_S": 5.0},
    owner_service: {"_TELL_S": 0.5},
}
_DOWN_AND_UP = [(0.02, 0.5), (0.1, 0.3), (0.25, 1.0), (0.05, 0.05)]  # how easily things break, and come back
_LATE = 0.1  # of the parties, which begin when the others are at work


def run(seed: int) -> World:
    """One history to its end."""
    large = seed % _LARGE_EVERY == 0

    async def story() -> World:
        luck = random.Random(seed)
        world = World(seed) if large else _small_world(seed, luck)
        await trouble(world, luck, 10.0 if large else luck.uniform(0.5, 3.5))
        await until_done(world)
        return world

    with nullcontext() if large else quick_parties():
        return simulate(story)


@contextmanager
def quick_parties() -> Iterator[None]:
    """The same parties, at another pace."""
    with pytest.MonkeyPatch.context() as patch:
        for module, constants in _QUICK.items():
            for name, value in constants.items():
                patch.setattr(module, name, value)
        yield


async def trouble(world: World, luck: random.Random, seconds: float) -> None:
    """Several times a second, anyone and anything may die or come back; after a while all come back for good."""
    loop = asyncio.get_running_loop()
    down, up = luck.choice(_DOWN_AND_UP)
    dead = {name for name in world.names if luck.random() < _LATE}
    for name in world.names:
        if name not in dead:
            world.start(name)
    await asyncio.sleep(luck.choice([0.0, 0.0, 0.0, 1.0, 3.0]))  # the later phases, too, want their share
    end = loop.time() + seconds
    while loop.time() < end:
        await asyncio.sleep(luck.uniform(0.1, 0.5))
        check_midway(world)
        for name in world.names:
            if name in dead and luck.random() < up:
                dead.discard(name)
                world.start(name)
            elif name not in dead and luck.random() < down:
                await strike(world, name, luck)
                if luck.random() < 0.3:  # at once again
                    world.start(name)
                elif name not in world.running:
                    dead.add(name)
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


async def strike(world: World, name: str, luck: random.Random) -> None:
    """Ends a process in one of the ways in which that can happen, or begins a second one beside it."""
    way = luck.random()
    if way < 0.7 or (name == "owner" and way > 0.8):  # what an owner has lost, it has lost for good
        world.kill(name)
    elif way < 0.8:
        await world.stop(name)
    elif way < 0.85:
        world.lose_disk(name)
    elif name in world.brokers:
        world.lose_power(name)
    else:
        world.start_twin(name)


async def until_done(world: World, seconds: float = 1500) -> None:
    """Until there is a result, and whoever was replaced has noticed it."""
    loop = asyncio.get_running_loop()
    while not world.finished and not world.failed and loop.time() < seconds:
        await asyncio.sleep(0.5)
    latest = loop.time() + 40.0  # a guest says hello every 30 seconds
    while not all(task.done() for task in world.zombies) and loop.time() < latest:
        await asyncio.sleep(0.5)


def _small_world(seed: int, luck: random.Random) -> World:
    guests, hosts = luck.choice([1, 2, 2]), luck.choice([1, 1, 2])
    world = World(seed, guests=guests, hosts=hosts, size=_SMALL, guest_noise=0.0, guest_dropout=0.0)
    world.patience_s = 1.0
    return world
