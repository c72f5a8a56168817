"""Owner and guests align by sealed letters, whatever is lost on the way and whoever is killed meanwhile."""

import asyncio
import random
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from world import MemoryStorage

from dvfl.align.ids import IdRules
from dvfl.align.rows import Rows
from dvfl.align.star.star import star_owner
from dvfl.align.star.star_guest import star_guest
from dvfl.align.tasks import Guest, Owner
from dvfl.align.union.union import union_guest, union_owner
from dvfl.errors import UserError
from dvfl.federation.guest.alignment_desk import Desk
from dvfl.federation.keys.authority import make_authority
from dvfl.federation.keys.credentials import write_credentials
from dvfl.federation.keys.sealing import Identity, identity
from dvfl.federation.owner import alignment_service
from dvfl.federation.owner.alignment_service import AlignmentService, Silent
from dvfl.federation.party.runtime import Here
from dvfl.federation.party.tasks import end
from dvfl.federation.protocol.messages import Role

GUESTS, HOSTS = ("guest-1", "guest-2", "guest-3"), ("host-1", "host-2")
PEOPLE = [f"person {number}".encode() for number in range(400)]
WAYS: dict[str, tuple[Callable[..., Owner], Callable[..., Guest]]] = {
    "union": (union_owner, union_guest),
    "star": (star_owner, star_guest),
}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Identity]:
    root, now = tmp_path_factory.mktemp("known"), datetime.now(UTC)
    authority = make_authority("clinics", now)
    roles: dict[str, Role] = {"owner": "owner", **dict.fromkeys(GUESTS, "guest")}
    for party, role in roles.items():
        write_credentials(root / party, authority, party=party, role=role, federation="clinics", days=30, now=now)
    return {party: identity(Path(root / party), party, role, "clinics") for party, role in roles.items()}


class Town:
    """All parties in one thread; letters are lost, guests forget what is not in their storage."""

    def __init__(self, known: dict[str, Identity], way: str, seed: int, lost: float = 0.0) -> None:
        self.known, self.way, self.luck, self.lost = known, way, random.Random(seed), lost
        draw = np.random.default_rng(seed)
        self.ids = {party: [one for one in PEOPLE if draw.random() < 0.6] for party in (*GUESTS, "owner")}
        for ids in self.ids.values():
            draw.shuffle(ids)
        self.storages = {party: MemoryStorage() for party in (*GUESTS, "owner")}
        self.rules = dict.fromkeys((*GUESTS, "owner"), IdRules())
        self.desks: dict[str, Desk] = {}
        self.guests: dict[str, Guest] = {}
        self.dropped: list[str] = []
        self.said: list[str] = []
        for guest in GUESTS:
            self.start(guest)

    def start(self, guest: str) -> None:
        """A new process of it."""

        def made(round: int) -> Guest:
            rows = Rows(self.ids[guest], [])
            own = WAYS[self.way][1](
                guest, rows, self.rules[guest], self.storages[guest], secret=secrets.token_bytes(32), round=round
            )
            self.guests[guest] = own
            return own

        self.desks[guest] = Desk(self.known[guest], "owner", made, Here(), lambda *what: self.dropped.append(str(what)))

    def owner(self) -> Owner:
        rows = Rows(self.ids["owner"], [])
        make = WAYS[self.way][0]
        return make("owner", rows, GUESTS, self.rules["owner"], self.storages["owner"], secret=secrets.token_bytes(32))

    def service(self, owner: Owner, silence_s: float = 30.0) -> AlignmentService:
        lines = {host: Line(self) for host in HOSTS}
        return AlignmentService(
            owner,
            self.known["owner"],
            lines,
            Here(),
            deadline_s=silence_s,
            drop=lambda *what: self.dropped.append(str(what)),
            log=self.said.append,
        )

    def check(self, owner: Owner) -> None:
        """Every row of every guest has the slot of its person; people of different slots are different."""
        slots: dict[bytes, set[int]] = {}
        for party in GUESTS:
            found = self.guests[party].slots
            assert found is not None
            assert len(set(found.train.tolist())) == len(self.ids[party])
            for one, slot in zip(self.ids[party], found.train.tolist(), strict=True):
                slots.setdefault(one, set()).add(slot)
        own = dict(zip(self.ids["owner"], owner.result.slots["owner"].train.tolist(), strict=True))
        for one, slot in own.items():
            assert (slot == -1) == (one not in slots)
            if slot >= 0:
                assert slots[one] == {slot}
        if self.way == "union":
            assert all(len(found) == 1 for found in slots.values())


class Line:
    """By way of one host."""

    def __init__(self, town: Town) -> None:
        self._town = town

    async def letter(self, guest: str, data: bytes) -> bytes | None:
        town, desk = self._town, self._town.desks.get(guest)
        await asyncio.sleep(0.001)
        if desk is None or town.luck.random() < town.lost:
            return None
        reply = await desk.answer(data)
        # What a process that was killed meanwhile had to say does not come; nor does what is lost.
        return None if town.desks.get(guest) is not desk or town.luck.random() < town.lost else reply

    async def tell(self, data: bytes) -> bytes | None:
        return None

    async def collect(self, data: bytes) -> bytes | None:
        return None


def run(attempt: Any) -> Any:
    return asyncio.run(asyncio.wait_for(attempt, 60))


@pytest.mark.parametrize("way", WAYS)
def test_all_rows_get_the_slot_of_their_person(known: dict[str, Identity], way: str) -> None:
    async def attempt() -> None:
        town = Town(known, way, 0)
        owner = town.owner()
        await town.service(owner).run()
        town.check(owner)
        assert not town.dropped

    run(attempt())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_kills_and_lost_letters_change_nothing(known: dict[str, Identity], way: str, seed: int) -> None:
    async def attempt() -> None:
        town = Town(known, way, seed, lost=0.2)
        for _ in range(town.luck.randint(1, 3)):  # processes of the owner that are killed
            doomed = asyncio.create_task(town.service(town.owner()).run())
            for _ in range(town.luck.randint(1, 4)):
                await asyncio.sleep(town.luck.random() * 0.05)
                guest = town.luck.choice(GUESTS)
                town.desks.pop(guest, None)
                await asyncio.sleep(town.luck.random() * 0.02)
                town.start(guest)
            await end([doomed])
        owner = town.owner()
        await town.service(owner).run()
        town.check(owner)

    run(attempt())


def test_a_guest_that_lost_its_disk_begins_anew_with_all(known: dict[str, Identity]) -> None:
    async def attempt() -> None:
        town = Town(known, "union", 3)
        doomed = asyncio.create_task(town.service(town.owner()).run())
        await asyncio.sleep(0.05)
        town.storages["guest-2"] = MemoryStorage()
        town.start("guest-2")
        await asyncio.sleep(0.05)
        await end([doomed])
        owner = town.owner()
        await town.service(owner).run()
        town.check(owner)

    run(attempt())


def test_guests_that_do_not_answer_are_named(known: dict[str, Identity]) -> None:
    async def attempt() -> None:
        town = Town(known, "union", 4)
        del town.desks["guest-3"]
        with pytest.raises(Silent) as silent:
            await town.service(town.owner(), silence_s=0.3).run()
        assert silent.value.guests == ["guest-3"]

    run(attempt())


def test_whom_alignment_waits_for_is_said_once(known: dict[str, Identity], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment_service, "_TELL_S", 0.1)

    async def attempt() -> None:
        town = Town(known, "union", 4)
        del town.desks["guest-3"]
        waiting = asyncio.create_task(town.service(owner := town.owner()).run())
        await asyncio.sleep(1.6)
        assert town.said == ["alignment waits for guest-3"]
        town.start("guest-3")
        await asyncio.wait_for(waiting, 20)
        town.check(owner)

    run(attempt())


def test_a_guest_that_normalises_ids_differently_is_refused_by_name(known: dict[str, Identity]) -> None:
    async def attempt() -> None:
        town = Town(known, "union", 5)
        town.rules["guest-2"] = IdRules("fold")
        with pytest.raises(UserError, match="guest-2 normalises ids differently"):
            await town.service(town.owner()).run()

    run(attempt())


def test_what_is_wrong_with_a_guests_ids_ends_the_guest(known: dict[str, Identity]) -> None:
    async def attempt() -> None:
        town = Town(known, "union", 6)

        def broken(round: int) -> Guest:
            raise UserError("table.parquet: 3 of 9 rows repeat an earlier 'id'")

        desk = town.desks["guest-1"] = Desk(known["guest-1"], "owner", broken, Here(), lambda *what: None)
        working = asyncio.create_task(town.service(town.owner()).run())
        with pytest.raises(UserError, match="3 of 9 rows repeat"):
            await asyncio.wait_for(desk.failed, 10)
        await end([working])

    run(attempt())
