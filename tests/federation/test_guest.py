"""One guest's own behaviour: what it pushes and when, what survives a kill, whom it obeys."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from virtual_loop import simulate
from world import MemoryStorage, World, plan_key

from dvfl.errors import UserError
from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.party.endings import Fenced
from dvfl.federation.protocol.plan import Plan, PlannedGuest, sign
from dvfl.federation.protocol.wire import Encodings, Welcome
from dvfl.parties.numerics.learner import Sgd

COMPARING = {"guest_objective": "simclr", "guest_noise": 0.0}


def made_plan(**change: Any) -> Plan:
    async def story() -> Plan:
        return World(0, **change).plan

    return simulate(story)


def tables() -> Any:
    async def story() -> Any:
        return World(0).tables["guest-1"]

    return simulate(story)


def made(storage: MemoryStorage | None = None, now_ms: int = 1000, said: list[str] | None = None) -> GuestParty:
    table, test = tables()
    disk = storage or MemoryStorage()
    log = (said if said is not None else []).append
    return GuestParty(
        "guest-1", table, test, disk, plan_key().public_key(), federation="f" * 64, now_ms=now_ms, log=log, lineage=77
    )


def welcome(plan: Plan | None, *, revision: int = 1, key: Ed25519PrivateKey | None = None, **change: Any) -> Welcome:
    text = sign(plan, "train", revision, key or plan_key()).text() if plan else ""
    answer = Welcome("host-1", 77, 1000, 0, 0, refill=False, fenced=False, swept=False, frozen=False, plan=text)
    return replace(answer, **change)


def trained(guest: GuestParty) -> list[Encodings]:
    messages = []
    while not guest.trained:
        message = guest.train()
        if message is not None:
            messages.append(message)
    return messages


def test_it_waits_for_a_plan_and_takes_the_one_that_the_owner_signed() -> None:
    guest = made()
    assert guest.state == "waiting"
    guest.welcomed("host-1", welcome(None))
    assert guest.state == "waiting"
    guest.welcomed("host-1", welcome(made_plan()))
    assert guest.state == "training"


def test_a_forged_plan_is_dropped_and_logged() -> None:
    said: list[str] = []
    guest = made(said=said)
    guest.welcomed("host-1", welcome(made_plan(), key=Ed25519PrivateKey.generate()))
    assert guest.state == "waiting"
    assert guest.counts["messages_dropped"] == 1
    assert "host-1" in said[0] and "not signed by the owner" in said[0]


def test_another_federation_file_is_told_with_both_hashes_and_the_plan_followed() -> None:
    said: list[str] = []
    guest = made(said=said)
    guest.welcomed("host-1", welcome(made_plan(federation="e" * 64)))
    assert guest.state == "training"
    assert "federation.toml here (ffffffffffff)" in said[0] and "(eeeeeeeeeeee)" in said[0]


def test_a_replayed_plan_changes_nothing() -> None:
    guest = made()
    guest.welcomed("host-1", welcome(made_plan(), revision=5))
    guest.welcomed("host-1", welcome(made_plan(), revision=3))
    assert guest.signed is not None and guest.signed.revision == 5


@pytest.mark.parametrize("period", [1, 2, 3])
def test_it_pushes_in_every_kth_epoch_every_slot_it_has(period: int) -> None:
    guest = made()
    guest.welcomed("host-1", welcome(made_plan(period=period, guest_epochs=6)))
    messages = trained(guest)
    assert sorted({message.epoch for message in messages}) == list(range(period, 7, period))
    for epoch in {message.epoch for message in messages}:
        slots = np.concatenate([message.slots for message in messages if message.epoch == epoch])
        assert set(slots.tolist()) == set(range(48))


def test_no_message_names_a_slot_twice_though_the_last_batch_is_completed_with_the_first_rows() -> None:
    guest = made()
    guest.welcomed("host-1", welcome(made_plan(batch=20)))
    for message in trained(guest):
        assert len(np.unique(message.slots)) == len(message.slots)


def test_stamps_rise_and_those_of_a_restarted_guest_are_higher_than_all_before() -> None:
    disk = MemoryStorage()
    first = made(disk)
    first.welcomed("host-1", welcome(made_plan()))
    before = [(m.incarnation, m.epoch, m.iteration) for m in trained(first)]
    assert before == sorted(before)
    first.save()
    again = made(disk, now_ms=10)  # a clock that went back
    assert again.incarnation > first.incarnation
    assert again.lineage == first.lineage
    assert (again.restarts, again.resumed_from_epoch) == (1, 3)


@pytest.mark.parametrize("change", [{"guest_noise": 0.2}, COMPARING, {**COMPARING, "adversary": 0.5}], ids=str)
def test_a_guest_killed_and_resumed_ends_with_the_weights_of_one_that_was_not(change: dict[str, Any]) -> None:
    plan = made_plan(guest_epochs=4, batch=8, **change)
    quiet = made()
    quiet.welcomed("host-1", welcome(plan))
    trained(quiet)
    disk = MemoryStorage()
    killed = made(disk)
    killed.welcomed("host-1", welcome(plan))
    while not killed.trained:
        killed.train()
        if killed.epoch < 4:
            killed.save()
        killed = made(disk)  # what was not saved is done again
        if killed.epoch == 3:
            trained(killed)
    assert killed.encoder_hash == quiet.encoder_hash


def test_the_sweep_holds_every_slot_once_and_is_numbered() -> None:
    guest = made()
    guest.welcomed("host-1", welcome(made_plan()))
    last = trained(guest)[-1]
    sweep = list(guest.sweep())
    slots = np.concatenate([message.slots for message in sweep])
    assert sorted(slots.tolist()) == list(range(48 + 16))  # with the rows that are only ever encoded
    assert [message.sweep.part for message in sweep if message.sweep] == list(range(len(sweep)))
    assert {message.sweep.parts for message in sweep if message.sweep} == {len(sweep)}
    assert all((m.epoch, m.iteration) > (last.epoch, last.iteration) for m in sweep)


def test_a_refill_leaves_out_the_rows_that_are_only_ever_encoded() -> None:
    guest = made()
    guest.welcomed("host-1", welcome(made_plan()))
    guest.train()
    refill = list(guest.sweep())
    assert max(message.slots.max() for message in refill) < 48
    assert all(message.epoch <= 3 for message in refill)


def test_encodings_are_those_of_its_encoder() -> None:
    guest = made()
    guest.welcomed("host-1", welcome(made_plan()))
    trained(guest)
    table, _ = tables()
    message = next(guest.sweep())
    assert guest.training is not None
    rows = np.array([int(np.flatnonzero(table.slots == slot)[0]) for slot in message.slots[:5]])
    with torch.no_grad():
        own = guest.training.guest.encode(torch.from_numpy(table.take(rows))[None])[0]
    np.testing.assert_allclose(message.values[:5], own, rtol=1e-5, atol=1e-6)


def test_a_fenced_guest_ends() -> None:
    with pytest.raises(Fenced, match="guest-1: host-1 knows a newer process"):
        made().welcomed("host-1", welcome(None, fenced=True))


def test_a_plan_for_another_table_is_refused_by_name() -> None:
    plan = made_plan()
    wider = replace(plan, guests=(PlannedGuest("guest-1", 9, unit=False), *plan.guests[1:]))
    with pytest.raises(UserError, match="its table gives 5 columns and the plan says 9"):
        made().welcomed("host-1", welcome(wider))


def test_a_plan_without_this_guest_is_refused_by_name() -> None:
    plan = made_plan()
    with pytest.raises(UserError, match="the plan has no guest 'guest-1'"):
        made().welcomed("host-1", welcome(replace(plan, guests=plan.guests[1:])))


def test_it_counts_a_host_as_ready_once_that_has_the_plan_and_knows_it() -> None:
    guest = made()
    for answer, ready in (
        (welcome(None), False),
        (welcome(made_plan(), lineage=5), False),
        (welcome(made_plan(), incarnation=999), False),
        (welcome(made_plan()), True),
    ):
        guest.welcomed("host-1", answer)
        assert guest.hosts["host-1"].ready is ready


def test_a_guest_whose_training_diverges_ends_and_says_what_to_change() -> None:
    guest = made()
    guest.welcomed("host-1", welcome(made_plan(guest_rule=Sgd(1e12))))
    with pytest.raises(UserError, match=r"guest-1: its training diverged; a lower rate in \[training.guest\]"):
        trained(guest)


def test_a_guest_that_learns_against_a_decoder_has_another_encoder_than_one_that_does_not() -> None:
    hashes = set()
    for adversary in (0.0, 0.5):
        guest = made()
        guest.welcomed("host-1", welcome(made_plan(guest_epochs=4, batch=8, **COMPARING, adversary=adversary)))
        trained(guest)
        hashes.add(guest.encoder_hash)
    assert len(hashes) == 2
