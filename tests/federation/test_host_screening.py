"""A guest whose answers cannot be right is absent at a host, named, and not kept."""

import asyncio

import numpy as np
import pytest
import torch
from subject import Size
from test_answering import SLOTS, answering, unsaid
from test_host import frozen
from test_predicting import IDS, timed, trained
from virtual_loop import simulate
from world import World

from dvfl.federation.guest.guest_answers import _Encoder
from dvfl.federation.host.frozen_answers import gathered
from dvfl.federation.host.host_screening import training_screen, without
from dvfl.federation.protocol.wire_types import ABSENT, CACHED, SUSPECTED
from dvfl.parties.faults.corruption import HOWS, How, corrupted

LARGE = Size(rows=1200, test_rows=64, batch=64)
ASKED = [f"slot {slot}" for slot in range(LARGE.rows, LARGE.rows + LARGE.test_rows)]


def test_suspects_are_absent_where_they_were_there() -> None:
    found = gathered(answering(frozen()), SLOTS, {}, unsaid(SLOTS), now_ms=1)
    found.states[0, 1] = ABSENT
    less = without(found, [1])
    assert less.states.tolist() == [[CACHED, ABSENT, CACHED], [CACHED, SUSPECTED, CACHED], [CACHED, SUSPECTED, CACHED]]
    assert not less.present[0, :, 1].any() and less.present[0, :, [0, 2]].all()
    assert less.ages[:, 1].tolist() == [-1.0] * 3 and found.present.all()


def test_few_rows_are_no_measure_of_what_is_usual() -> None:
    assert training_screen(answering(frozen())) is None


def spoil(monkeypatch: pytest.MonkeyPatch, world: World, guest: str, how: How) -> None:
    """From now on a guest says that its rows have changed, and answers with wrong encodings."""
    right, training = _Encoder.encode, world.parties[guest].training

    def wrong(self: _Encoder, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        has, values = right(self, slots)
        if self.training is not training:
            return has, values
        order, noise = torch.randperm(len(values)), torch.randn(values.shape)
        return has, corrupted(torch.from_numpy(values), how, order, noise).numpy()

    monkeypatch.setattr(_Encoder, "encode", wrong)
    world.tables[guest] = tuple(table.changed(lambda values: values.copy()) for table in world.tables[guest])
    for table in world.tables[guest]:
        table.identity += "changed"


@pytest.mark.parametrize("how", HOWS)
def test_a_corrupt_guest_is_named_in_the_answer_and_the_others_are_used(
    how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_predicting.IDS", [f"slot {slot}" for slot in range(LARGE.rows + LARGE.test_rows)])

    async def story() -> None:
        world, predictor = await trained(size=LARGE)
        await asyncio.sleep(5.0)
        before, _ = await timed(predictor, ASKED)
        spoil(monkeypatch, world, "guest-2", how)
        await asyncio.sleep(3.0)
        found, _ = await timed(predictor, ASKED)
        parts = [one.guests["guest-2"] for one in found]
        assert all(part.state == "absent" and part.suspected for part in parts)
        assert all(one.degraded and one.answered for one in found)
        assert all(one.guests[guest].state == "fresh" for one in found for guest in ("guest-1", "guest-3"))
        assert np.mean([one.label == was.label for one, was in zip(found, before, strict=True)]) > 0.9
        world.kill("guest-2")  # what it sent was not kept
        await asyncio.sleep(3.0)
        cached, _ = await timed(predictor, ASKED)
        assert [one.label for one in cached] == [one.label for one in before]

    simulate(story)


def test_a_guest_whose_rows_have_changed_honestly_is_used() -> None:
    assert IDS  # of the small world, in which nobody is ever screened

    async def story() -> None:
        world, predictor = await trained()
        world.tables["guest-2"] = tuple(table.changed(lambda values: values + 0.1) for table in world.tables["guest-2"])
        await asyncio.sleep(3.0)
        found, _ = await timed(predictor)
        assert not any(one.degraded for one in found)

    simulate(story)
