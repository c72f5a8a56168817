"""The owner's own behaviour: its word, its deadlines, what it collects, and what survives a kill."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from virtual_loop import simulate
from world import MemoryStorage, World, plan_key

from dvfl.errors import RunFailed, UserError
from dvfl.federation.owner.owner import OwnerParty
from dvfl.federation.owner.results import result
from dvfl.federation.party.endings import Fenced
from dvfl.federation.party.owner_settings import OwnerSettings
from dvfl.federation.protocol.plan import read_plan
from dvfl.federation.protocol.wire import Chunk, GuestSeen, Refused, Status

HASH = "a" * 64
CHUNKS = 4  # of 16 slots each


def world(**change: Any) -> World:
    async def story() -> World:
        return World(0, **change)

    return simulate(story)


def made(storage: MemoryStorage | None = None, now_ms: int = 0, **change: Any) -> OwnerParty:
    here = world(**change)
    return OwnerParty(
        "owner",
        here.labels[0],
        here.labels[1],
        OwnerSettings(epochs=3, batch=16),
        here.plan,
        plan_key(),
        storage or MemoryStorage(),
        collect_deadline_s=60,
        now_ms=now_ms,
        log=lambda text: None,
    )


def status(host: str, *, frozen: str = "", revision: int = 1, held: int = 64) -> Status:
    guest = GuestSeen("done", 3, 2, held, 0.0, "", 0.5, 2, 1, 30, 20, 1, 0.5)
    guests = dict.fromkeys(("guest-1", "guest-2", "guest-3"), guest)
    chunks = CHUNKS if frozen else 0
    return Status(host, "0" * 32, revision, "x", 12, 12, 12, 0.1, frozen, chunks, 1, 6, 40, 30, 9, 1, 1.5, guests)


def chunk(host: str, number: int) -> Chunk:
    values = np.random.default_rng(number).normal(size=(16, 6)).astype(np.float32)
    return Chunk(host, "0" * 32, HASH, number, 16 * number, values, np.ones((16, 3), np.uint8))


def collecting(storage: MemoryStorage | None = None) -> OwnerParty:
    owner = made(storage)
    for host in ("host-1", "host-2"):
        owner.told(host, status(host, frozen=HASH))
    owner.settle(now_ms=1)
    assert owner.state == "collecting"
    return owner


def collected(owner: OwnerParty, *hosts: str) -> OwnerParty:
    for host in hosts or ("host-1", "host-2"):
        while (wanted := owner.wanted(host)) is not None:
            owner.took(host, chunk(host, wanted.chunk))
    return owner


def done(storage: MemoryStorage | None = None) -> OwnerParty:
    owner = collected(collecting(storage))
    owner.settle(now_ms=2)
    while owner.state == "training":
        owner.train(now_ms=3000)
    return owner


def test_it_signs_the_plan_it_tells() -> None:
    owner = made()
    signed = read_plan(owner.tell().plan, plan_key().public_key())
    assert (signed.phase, signed.revision, signed.plan) == ("train", 1, owner.plan)


def test_every_start_raises_the_revision_so_that_an_older_process_is_fenced() -> None:
    disk = MemoryStorage()
    first = made(disk)
    first.told("host-1", status("host-1"))
    again = made(disk)
    assert again.signed.revision == 2
    assert again.plan == first.plan
    with pytest.raises(Fenced, match="host-1 follows a newer process"):
        first.told("host-1", status("host-1", revision=2))


def test_an_owner_whose_folder_was_restored_from_a_copy_goes_past_what_hosts_have_seen() -> None:
    owner = made()
    owner.told("host-1", status("host-1", revision=9))
    assert owner.signed.revision == 10


def test_it_collects_once_all_hosts_are_frozen() -> None:
    owner = made()
    owner.told("host-1", status("host-1", frozen=HASH))
    owner.told("host-2", status("host-2"))
    owner.settle(now_ms=1)
    assert owner.state == "phase 1"
    owner.told("host-2", status("host-2", frozen=HASH))
    owner.settle(now_ms=1)
    assert (owner.state, owner.signed.phase, owner.signed.revision) == ("collecting", "collect", 2)


def test_at_the_deadline_it_goes_on_with_a_quorum() -> None:
    owner = made()
    owner.told("host-1", status("host-1"))
    owner.settle(now_ms=600_000)
    assert owner.state == "collecting"


@pytest.mark.parametrize(
    ("change", "held"), [({"quorum_hosts": 2}, 64), ({"quorum_guests": 2}, 0)], ids=["hosts", "guests"]
)
def test_at_the_deadline_without_a_quorum_it_ends_and_names_who_is_missing(change: dict[str, Any], held: int) -> None:
    owner = made(**change)
    owner.told("host-1", status("host-1", held=held))
    with pytest.raises(RunFailed, match=r"at the deadline \d of 2 hosts had heard enough guests.*missing: .*host-2"):
        owner.settle(now_ms=600_000)


def test_the_deadline_counts_from_when_the_run_began_whatever_restarted_since() -> None:
    disk = MemoryStorage()
    made(disk, now_ms=0, quorum_hosts=2)
    again = made(disk, now_ms=500_000, quorum_hosts=2)
    again.settle(now_ms=599_999)
    with pytest.raises(RunFailed):
        again.settle(now_ms=600_000)


def test_chunks_are_stored_before_the_next_is_asked_for_and_never_asked_for_twice() -> None:
    disk = MemoryStorage()
    owner = collecting(disk)
    for number in range(2):
        wanted = owner.wanted("host-1")
        assert wanted is not None and wanted.chunk == number
        owner.took("host-1", chunk("host-1", number))
    owner.save()
    again = made(disk)
    again.told("host-1", status("host-1", frozen=HASH, revision=3))
    wanted = again.wanted("host-1")
    assert wanted is not None and wanted.chunk == 2


@pytest.mark.parametrize(
    "change",
    [
        {"frozen": "b" * 64},
        {"host": "host-2"},
        {"first": 60},
        {"values": np.ones((16, 7), np.float32)},
        {"chunk": 99},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_chunk_that_was_not_asked_for_is_dropped(change: dict[str, Any]) -> None:
    owner = collecting()
    owner.wanted("host-1")
    owner.took("host-1", replace(chunk("host-1", 0), **change))
    assert owner.counts["messages_dropped"] == 1
    assert not owner.collected["host-1"].have


def test_a_host_that_froze_anew_is_collected_anew() -> None:
    owner = collected(collecting(), "host-1")
    assert owner.wanted("host-1") is None
    owner.told("host-1", status("host-1", frozen="b" * 64, revision=2))
    wanted = owner.wanted("host-1")
    assert wanted is not None and (wanted.frozen, wanted.chunk) == ("b" * 64, 0)


def test_at_the_collections_deadline_it_trains_with_the_hosts_it_has() -> None:
    owner = collected(collecting(), "host-1")
    owner.settle(now_ms=60_000)
    assert owner.state == "collecting"
    owner.settle(now_ms=60_001)
    assert owner.state == "training"
    while owner.state == "training":
        owner.train(now_ms=60_002)
    assert owner.score is not None


def test_a_killed_owner_goes_on_in_its_training_to_the_same_result() -> None:
    disk = MemoryStorage()
    owner = collected(collecting(disk))
    owner.settle(now_ms=2)
    owner.train(now_ms=3)
    owner.save()
    again = made(disk)
    assert (again.state, again.epoch, again.resumed_from_epoch) == ("training", 1, 1)
    while again.state == "training":
        again.train(now_ms=4)
    assert again.score == done().score


def test_an_owner_that_was_away_at_its_deadline_hears_the_hosts_before_it_decides() -> None:
    disk = MemoryStorage()
    made(disk)
    again = made(disk, now_ms=10**9)
    again.settle(now_ms=10**9 + 1)
    assert again.state == "phase 1"
    again.told("host-1", status("host-1", frozen=HASH, revision=2))
    again.settle(now_ms=10**9 + 30_000)
    assert again.state == "collecting"


def test_what_was_known_of_hosts_and_guests_outlives_the_owners_process() -> None:
    disk = MemoryStorage()
    owner = collected(collecting(disk))
    owner.settle(now_ms=2)
    again = made(disk)
    assert again.statuses == owner.statuses and set(again.statuses) == {"host-1", "host-2"}


def test_a_refusal_is_counted_and_changes_nothing() -> None:
    owner = made()
    owner.told("host-1", Refused("no"))
    assert not owner.statuses
    assert owner.counts["messages_dropped"] == 1


def test_settings_that_changed_since_the_run_began_are_refused() -> None:
    disk = MemoryStorage()
    made(disk)
    with pytest.raises(UserError, match="have changed since this run began; put the old ones back"):
        made(disk, batch=8)


def test_the_result_has_the_fields_of_a_training_and_every_partys_counters() -> None:
    owner = done()
    found = result(owner, {"dataset": "made", "preset": "tuned"}, owner.seconds())
    assert found["accuracy"] == [found["accuracy_mean"]] == [owner.score]
    assert found["status"] == "ok" and found["strategy"] == "dvfl"
    assert set(found["seconds"]) == {"guests", "hosts", "owner", "total"}
    assert found["longest_wait_s"] == 1.5
    assert set(found["parties"]) == {"guest-1", "guest-2", "guest-3", "host-1", "host-2", "owner"}
    assert found["parties"]["guest-1"]["messages_sent"] == 30
    assert found["parties"]["host-1"]["resumed_from_epoch"] == 2


def test_a_loss_that_is_no_number_is_left_out_and_saved_all_the_same() -> None:
    storage = MemoryStorage()
    owner = collected(collecting(storage))
    owner.settle(now_ms=2)
    owner.train(now_ms=3)
    assert owner._training is not None
    owner._training.loss = float("nan")
    assert owner.loss is None
    owner.save()
    saved = storage.load()
    assert saved is not None and saved.values["loss"] is None
