"""A whole alignment in one process: parties over storages that outlive them, some of them killed on the way."""

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dvfl.align.ids import IdRules
from dvfl.align.matching import Matched, Slots
from dvfl.align.rows import Rows
from dvfl.align.star.star import star_owner
from dvfl.align.star.star_guest import star_guest
from dvfl.align.tasks import Guest, Owner, Task
from dvfl.align.union.union import union_guest, union_owner

OWNER = "owner"
RULES = IdRules()


class Killed(Exception):
    """The process that was about to write is no more."""


class Held(dict[str, bytes]):
    """A storage in memory; its owner can be killed before any of its writes."""

    kill_at: int | None = None
    writes = 0

    def put(self, name: str, content: bytes) -> None:
        self._count()
        self[name] = content

    def drop(self, prefix: str) -> None:
        self._count()
        for name in [name for name in self if name.startswith(prefix)]:
            del self[name]

    def _count(self) -> None:
        self.writes += 1
        if self.writes == self.kill_at:
            raise Killed


def secret(*key: object) -> bytes:
    return hashlib.blake2b(repr(key).encode(), digest_size=32).digest()


def rows(train: Iterable[int] = (), test: Iterable[int] = ()) -> Rows:
    return Rows([b"%d" % one for one in train], [b"%d" % one for one in test])


class Meeting:
    """All parties of an alignment, made when they are needed and made again after a kill."""

    def __init__(self, sets: Mapping[str, Rows], way: str = "union", seed: int = 0, **of_owner: Any) -> None:
        self.sets, self.way, self.of_owner = dict(sets), way, of_owner
        self.rules: dict[str, IdRules] = {}
        self.storages = {name: Held() for name in self.sets}
        self.luck = random.Random(seed)
        self.starts = 0
        self.tasks: list[tuple[str, Task]] = []  # all that was asked
        self.guests: dict[str, Guest] = {}
        self.owner: Owner = self.start_owner()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.sets if name != OWNER)

    def start_owner(self) -> Owner:
        self.starts += 1
        make = union_owner if self.way == "union" else star_owner
        self.owner = make(
            OWNER,
            self.sets[OWNER],
            self.names,
            RULES,
            self.storages[OWNER],
            secret=secret(self.starts),
            **self.of_owner,
        )
        return self.owner

    def guest(self, name: str) -> Guest:
        if name not in self.guests:
            self.starts += 1
            kwargs = {key: self.of_owner[key] for key in ("pad", "round") if key in self.of_owner}
            make = union_guest if self.way == "union" else star_guest
            self.guests[name] = make(
                name,
                self.sets[name],
                self.rules.get(name, RULES),
                self.storages[name],
                secret=secret(self.starts),
                **kwargs,
            )
        return self.guests[name]

    def run(self, after: Callable[[int], None] = lambda step: None) -> Matched:
        """Until all have their slots. `after` is called after every answer, with their number so far."""
        step = 0
        while not self.owner.finished:
            given = 0
            for party in self.luck.sample(self.owner.parties, len(self.owner.parties)):
                task = self.owner.wanted(party)
                if task is None:
                    continue
                given += 1
                self.tasks.append((party, task))
                answer = self.owner.answer(task) if party == OWNER else self.guest(party).answer(task)
                self.owner.took(party, task, answer)
                step += 1
                after(step)
            assert step < 2000, "they go round in circles"
            assert given, "nobody has anything to do, and they have not finished"
        return self.owner.result

    def slots(self, name: str) -> Slots:
        found = self.owner.result.slots[OWNER] if name == OWNER else self.guest(name).slots
        assert found is not None
        return found

    def check(self) -> None:
        """Equal ids have equal slots and others have not, presence is who has them, and training slots come first."""
        holders: dict[bytes, set[str]] = {}
        for name in self.names:
            for one in (*self.sets[name].train, *self.sets[name].test):
                holders.setdefault(one, set()).add(name)
        labelled = {*self.sets[OWNER].train, *self.sets[OWNER].test}
        slot_of: dict[tuple[str, bytes], int] = {}
        result = self.owner.result
        for name in self.sets:
            ids, slots = self.sets[name], self.slots(name)
            for part in ("train", "test"):
                assert len(getattr(ids, part)) == len(getattr(slots, part))
                for one, slot in zip(getattr(ids, part), getattr(slots, part).tolist(), strict=True):
                    if one not in holders:
                        assert slot == -1
                        continue
                    if self.way == "star" and one not in labelled:  # then nobody knows that others have it too
                        key, holder = (name, one), {name}
                    else:
                        key, holder = ("", one), holders[one]
                    assert slot_of.setdefault(key, slot) == slot
                    assert self.present(slot) == holder
                    assert (slot < result.training) == (part == "train")
        assert len(set(slot_of.values())) == len(slot_of)

    def present(self, slot: int) -> set[str]:
        result = self.owner.result
        return {name for name, there in zip(result.guests, result.presence[slot], strict=True) if there}
