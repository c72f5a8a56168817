"""Predictions with whoever is there, by deterministic simulation: the very services on a clock that a seed drives."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
import torch
from subject import Size
from trouble import until_done
from virtual_loop import simulate
from world import World, _OwnerLine, plan_key

from dvfl.federation.owner.collected_rows import CollectedRows, read_collected
from dvfl.federation.owner.owner_folder import Saved, read_saved
from dvfl.federation.prediction.host_watch import VOUCHED_S
from dvfl.federation.prediction.predicting import FederationPredictor
from dvfl.federation.protocol.predictions import NotReady, Prediction
from dvfl.federation.protocol.wire import Ask, Chunk, Predict, decode

IDS = [f"person {number}" for number in range(64)]  # slot by slot
FRESH, CACHED, ABSENT = "fresh", "cached", "absent"


class Folder:
    """The owner's folder in a simulated world."""

    def __init__(self, world: World, *, holds: bool = False) -> None:
        self._world, self._holds = world, holds
        self.saved: Saved | None = None
        self.collected: dict[str, CollectedRows] = {}
        self.guests, self.hosts = tuple(world.guests), tuple(world.hosts)
        self.refresh()

    def refresh(self) -> None:
        checkpoint = self._world.disks["owner"].load()
        self.saved = None if checkpoint is None else read_saved(checkpoint, plan_key().public_key())
        model = self.saved.model if self.saved else None
        if model is not None and self._holds:
            self.collected = read_collected(self._world.disks["owner"].get, model.plan, model.hosts)

    def slot(self, one: str) -> int:
        return IDS.index(one) if one in IDS else -1

    def how_far(self) -> str:
        return "not trained yet: epoch 0"

    def status(self) -> dict[str, Any]:
        return {"up": True}


class Swift:
    """An owner's machine that computes in no time, so that a deadline is about the others."""

    def __init__(self, world: World) -> None:
        self.now_ms, self.awake_s = world.now_ms, world.awake_s

    async def work(self, task: Callable[[], Any]) -> Any:
        return task()


async def trained(seed: int = 0, *, holds: bool = False, **change: Any) -> tuple[World, FederationPredictor]:
    """A federation whose run is over, and a predictor that has looked around; it may hold what hosts gave."""
    world = World(seed, **change)
    for name in world.names:
        world.start(name)
    await until_done(world)
    predictor = predicting(world, holds=holds)
    await asyncio.sleep(3.0)
    return world, predictor


def predicting(world: World, *, holds: bool = False, **options: Any) -> FederationPredictor:
    lines = {host: _OwnerLine(world, host) for host in world.hosts}
    predictor = FederationPredictor(Folder(world, holds=holds), "world", lines, Swift(world), **options)
    watching.append(asyncio.get_running_loop().create_task(predictor.run()))
    return predictor


watching: list[asyncio.Task[None]] = []  # held until the loop ends


async def timed(
    predictor: FederationPredictor, ids: list[str] = IDS, deadline_s: float = 2.0
) -> tuple[list[Prediction], float]:
    began = asyncio.get_running_loop().time()
    found = await predictor.predict(ids, deadline_s)
    return found, asyncio.get_running_loop().time() - began


def told(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    simulate(story)


def states(found: list[Prediction], guest: str) -> set[str]:
    return {one.guests[guest].state for one in found}


def collected(world: World) -> np.ndarray:
    """The head's probabilities for every slot, from what the owner had collected."""
    model = Folder(world).saved
    assert model is not None and model.model is not None
    head, parts = model.model.head, []
    for host in world.hosts:
        blobs = [blob for name, blob in sorted(world.disks["owner"].blobs.items()) if f"chunk.{host}.00" in name]
        parts.append(np.concatenate([decode(blob, Chunk).values for blob in blobs]))
    output = head.outputs(torch.from_numpy(np.concatenate(parts, 1)), None)
    return torch.softmax(output.double() / head.temperature, 1).numpy()


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("change", [{"partial": 0}, {"partial": 2}, {"host_model": "concatenate"}], ids=str)
def test_with_everybody_there_it_is_what_the_head_makes_of_the_collected_encodings(
    change: dict[str, Any], holds: bool
) -> None:
    async def story() -> None:
        world, predictor = await trained(holds=holds, **change)
        found, seconds = await timed(predictor)
        assert seconds < 2.0
        made = np.array([list(one.probabilities.values()) for one in found])
        np.testing.assert_allclose(made, collected(world), atol=1e-5)
        assert not any(one.degraded for one in found)
        parts = [part for one in found for part in one.guests.values()]
        assert all(part.state == FRESH and 0 <= (part.age_s or 0.0) <= VOUCHED_S for part in parts)
        assert all(one.hosts == {"host-1": True, "host-2": True} for one in found)
        assert all(one.label == max(one.probabilities, key=one.probabilities.__getitem__) for one in found)
        assert all(one.confidence == max(one.probabilities.values()) for one in found)

    told(story)


@pytest.mark.parametrize("holds", [False, True])
def test_a_guest_that_was_killed_is_cached_with_its_age_and_all_else_stays(holds: bool) -> None:
    async def story() -> None:
        world, predictor = await trained(holds=holds)
        before, _ = await timed(predictor, IDS[:32])
        world.kill("guest-2")
        await asyncio.sleep(10.0)
        found, _ = await timed(predictor)
        assert states(found, "guest-1") == {FRESH} and states(found, "guest-2") == {CACHED}
        assert all(one.degraded for one in found)
        ages = [one.guests["guest-2"].age_s or 0.0 for one in found]
        assert all(9 < age < 13 for age in ages)  # since it last said that nothing has changed
        assert [one.label for one in found[:32]] == [one.label for one in before]
        world.start("guest-2")
        await asyncio.sleep(5.0)
        again, _ = await timed(predictor)
        assert not any(one.degraded for one in again)

    told(story)


@pytest.mark.parametrize("holds", [False, True])
def test_a_guest_that_lost_its_disk_is_absent_for_good(holds: bool) -> None:
    async def story() -> None:
        world, predictor = await trained(holds=holds)
        world.lose_disk("guest-2")
        world.start("guest-2")
        for _ in range(2):
            await asyncio.sleep(40.0)
            found, _ = await timed(predictor)
            assert states(found, "guest-2") == {ABSENT} and states(found, "guest-3") == {FRESH}
            assert all(one.degraded and one.answered for one in found)

    told(story)


def test_a_host_that_was_killed_is_missing_and_comes_back() -> None:
    async def story() -> None:
        world, predictor = await trained()
        world.kill("host-1")
        await asyncio.sleep(6.0)
        found, seconds = await timed(predictor)
        assert seconds < 2.0
        assert all(one.hosts == {"host-1": False, "host-2": True} for one in found)
        assert all(one.degraded and one.answered for one in found) and states(found, "guest-1") == {FRESH}
        world.start("host-1")
        await asyncio.sleep(6.0)
        again, _ = await timed(predictor)
        assert not any(one.degraded for one in again)

    told(story)


def test_with_everything_down_the_answer_comes_in_time_and_says_so() -> None:
    async def story() -> None:
        world, predictor = await trained()
        for name in world.names:
            world.kill(name)
        for _ in range(3):  # at once, and when it is known
            found, seconds = await timed(predictor)
            assert seconds < 2.0
            assert not any(one.answered for one in found) and all(one.known and one.degraded for one in found)
            assert all(states(found, guest) == {ABSENT} for guest in world.guests)
            await asyncio.sleep(3.0)

    told(story)


@pytest.mark.parametrize("deadline_s", [2.0, 5.0])
@pytest.mark.parametrize("silent_s", [1.1, 5.0])
def test_a_guest_that_is_silent_costs_no_more_than_its_share_of_the_time(deadline_s: float, silent_s: float) -> None:
    async def story() -> None:
        world, predictor = await trained()
        for host in world.hosts:
            world.links["guest-1", host] = False
        await asyncio.sleep(silent_s)
        found, seconds = await timed(predictor, deadline_s=deadline_s)
        assert seconds < deadline_s
        assert states(found, "guest-1") == {CACHED}
        assert all(one.answered for one in found)

    told(story)


def test_unknown_ids_are_marked_and_repeated_ones_answered_alike() -> None:
    async def story() -> None:
        _, predictor = await trained()
        found, _ = await timed(predictor, ["nobody", IDS[3], IDS[5], IDS[3]])
        assert [one.id for one in found] == ["nobody", IDS[3], IDS[5], IDS[3]]
        assert [one.known for one in found] == [False, True, True, True]
        assert not found[0].answered and found[1] == found[3]

    told(story)


def test_no_ids_and_unknown_ids_alone_are_answered_without_asking_anybody() -> None:
    async def story() -> None:
        _, predictor = await trained()
        assert (await timed(predictor, []))[0] == []
        found, _ = await timed(predictor, ["nobody"])
        assert [one.known for one in found] == [False]

    told(story)


def test_padded_requests_give_the_same_answers_and_ask_for_more() -> None:
    async def story() -> None:
        world, predictor = await trained()
        plain, _ = await timed(predictor, IDS[:3])
        padding = predicting(world, pad=20)
        world.to_hosts.clear()
        padded, _ = await timed(padding, IDS[:3])
        assert [one.label for one in padded] == [one.label for one in plain]
        assert {len(decode(data, Predict).slots) for data in world.to_hosts} == {20}

    told(story)


def test_before_training_is_over_it_says_how_far_the_run_is() -> None:
    async def story() -> None:
        world = World(0)
        predictor = predicting(world)
        with pytest.raises(NotReady, match="not trained yet"):
            await predictor.predict(IDS, 1.0)
        assert not predictor.status()["ready"] and predictor.classes is None

    told(story)


def of_the_other_class(values: np.ndarray) -> np.ndarray:
    return values + 4 * np.sign(2 - values.mean(1, keepdims=True))


@pytest.mark.parametrize("holds", [False, True])
def test_rows_that_changed_are_encoded_as_they_are_now(holds: bool) -> None:
    async def story() -> None:
        world, predictor = await trained(holds=holds)
        before, _ = await timed(predictor)
        for name in world.guests:
            train, test = world.tables[name]
            world.tables[name] = train.changed(of_the_other_class), test.changed(of_the_other_class)
        await asyncio.sleep(3.0)
        after, _ = await timed(predictor)
        assert not any(one.degraded for one in after)
        assert np.mean([one.label != other.label for one, other in zip(before, after, strict=True)]) > 0.8
        for name in world.guests:
            world.kill(name)
        await asyncio.sleep(3.0)
        cached, _ = await timed(predictor)
        assert [one.label for one in cached] == [one.label for one in after]

    told(story)


def test_nobody_is_asked_as_long_as_all_say_that_nothing_has_changed() -> None:
    async def story() -> None:
        world, predictor = await trained(holds=True)
        world.to_hosts.clear()
        world.to_guests.clear()
        found, _ = await timed(predictor)
        assert not any(one.degraded for one in found) and not world.to_hosts
        assert all(not len(decode(data, Ask).slots) for data in world.to_guests)
        assert all(0 <= (part.age_s or 0.0) <= VOUCHED_S for one in found for part in one.guests.values())
        world.kill("guest-2")
        await asyncio.sleep(2.0)
        found, _ = await timed(predictor)
        assert len(world.to_hosts) == 2 and all(one.degraded for one in found)
        world.kill("host-2")
        await asyncio.sleep(6.0)
        found, _ = await timed(predictor)
        assert all(one.hosts == {"host-1": True, "host-2": False} for one in found)

    told(story)


def test_a_host_that_froze_anew_with_other_weights_counts_as_missing() -> None:
    async def story() -> None:
        world, predictor = await trained()
        world.lose_disk("host-2")
        world.start("host-2")
        await asyncio.sleep(120.0)
        assert world.parties["host-2"].frozen
        found, _ = await timed(predictor)
        assert all(one.hosts == {"host-1": True, "host-2": False} and one.answered for one in found)

    told(story)


def test_losses_of_guests_move_while_they_train() -> None:
    async def story() -> None:
        world = World(0, size=Size(guest_epochs=40))
        for name in world.names:
            world.start(name)
        predictor, seen = predicting(world), set()
        while world.parties.get("guest-1") is None or not world.parties["guest-1"].trained:
            seen.add(predictor.status()["guests"]["guest-1"]["loss"])
            await asyncio.sleep(0.1)
        assert len(seen - {None}) >= 5

    told(story)


def test_who_is_up_is_known_within_two_seconds() -> None:
    async def story() -> None:
        world, predictor = await trained()
        status = predictor.status()
        assert all(status["hosts"][host]["up"] for host in world.hosts)
        assert all(status["guests"][guest]["up"] for guest in world.guests)
        world.kill("guest-1")
        await asyncio.sleep(2.0)
        status = predictor.status()
        assert [status["guests"][guest]["up"] for guest in world.guests] == [False, True, True]
        world.start("guest-1")
        await asyncio.sleep(2.0)
        assert predictor.status()["guests"]["guest-1"]["up"]
        held = predictor.status()["guests"]["guest-1"]["hosts"]
        assert {host: seen["held"] for host, seen in held.items()} == {"host-1": 64, "host-2": 64}

    told(story)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_dies_and_comes_back_every_answer_is_in_time_and_says_what_it_rests_on(seed: int) -> None:
    async def story() -> None:
        world, predictor = await trained(seed, holds=seed % 2 == 0, guests=2)
        plain, luck = collected(world), random.Random(seed)
        for _ in range(15):
            for name in [*world.guests, *world.hosts]:
                if luck.random() < 0.3:
                    luck.choice([world.kill, world.start, world.start])(name)
            for link in world.links:
                world.links[link] = luck.random() < 0.9
            await asyncio.sleep(luck.uniform(0.0, 3.0))
            deadline_s = luck.choice([0.4, 1.0, 2.0])
            found, seconds = await timed(predictor, deadline_s=deadline_s)
            assert seconds <= deadline_s
            for one, row in zip(found, plain, strict=True):
                used = [part for part in one.guests.values() if part.state != ABSENT]
                assert one.answered == bool(used) == any(one.hosts.values())
                if not one.degraded:
                    assert all(part.state == FRESH for part in used) and all(one.hosts.values())
                if all(one.hosts.values()) and len(used) == 2:  # rows have not changed: cached ones serve as well
                    np.testing.assert_allclose(list(one.probabilities.values()), row, atol=1e-5)

    told(story)
