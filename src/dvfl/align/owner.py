"""The owner's side of an alignment, by whichever way: who is asked what, what came, and what is told in the end."""

from typing import Protocol

import numpy as np

from dvfl.align.errands import Errand, Errands
from dvfl.align.guest import PARTS
from dvfl.align.ids import IdRules
from dvfl.align.matching import Matched
from dvfl.align.sessions import OwnerSession
from dvfl.align.tasks import Progress, Storage, Task

HELD = "held."
_RESULT = "matched"


class Way(Protocol):
    """How rows are matched. What it holds lies in the storage, at the session's places that begin with HELD."""

    @property
    def progress(self) -> Progress: ...

    def begin(self, session: OwnerSession, errands: Errands) -> None:
        """All guests are known: goes on from what is held, and says what is to be asked."""

    def task(self, errand: Errand) -> tuple[str, int, bytes]:
        """Kind, number and content of what to ask."""

    def take(self, party: str, errand: Errand, body: bytes) -> None:
        """Holds an answer and says what is to be asked now; raises, naming whoever it was, where it cannot be right."""

    def answer(self, task: Task) -> bytes:
        """The owner's own computing, in any thread."""

    def match(self) -> Matched:
        """Slots for everybody, the owner's in the order of its rows; in any thread."""

    def parts(self, guest: str, result: Matched, session: OwnerSession) -> list[bytes]:
        """What the guest is told of its slots."""

    def told(self, guest: str, body: bytes) -> None:
        """Its answer to one of them; raises where the guest objects."""


class AligningOwner:
    """The owner, by some way. `tasks.Owner` says how it is driven."""

    def __init__(
        self,
        name: str,
        guests: tuple[str, ...],
        rules: IdRules,
        storage: Storage,
        way: Way,
        *,
        secret: bytes,
        fresh: bytes,  # random bytes of this process alone
        round: int,
        own_ids: bytes,  # a commitment to them
    ) -> None:
        self.name, self.guests, self._storage, self._way = name, guests, storage, way
        self._session = OwnerSession(guests, rules, storage, secret, round, own_ids)
        self._draw = np.random.Generator(np.random.Philox(key=int.from_bytes(fresh[:16], "little")))
        self._errands = self._afresh()
        if self._session.changed:
            self._begin_again()
        elif not self._session.unknown:
            self._begin()

    @property
    def parties(self) -> tuple[str, ...]:
        return (*self.guests, self.name)

    @property
    def progress(self) -> Progress:
        """How far the matching is; what is told afterwards takes next to no time."""
        return self._way.progress if self._result is None else Progress(1, 1)

    @property
    def finished(self) -> bool:
        return self._session.done

    @property
    def result(self) -> Matched:
        if self._result is None:
            raise RuntimeError("nothing is matched yet")
        return self._result

    def wanted(self, party: str) -> Task | None:
        if party in self._session.unknown:
            task = self._task("open", 0, b"")
            if self._errands.asked(party, task):
                return None
            return self._errands.gave(party, task, Errand("open", party))
        errand = self._errands.next(party)
        return None if errand is None else self._errands.gave(party, self._to_ask(errand), errand)

    def took(self, party: str, task: Task, answer: bytes) -> None:
        errand = self._errands.asked(party, task)
        if errand is None or (task.session, task.round) != (self._session.salt, self._session.round):
            return
        if errand.kind == "open":
            self._open(party, task, answer)
            return
        body = answer if party == self.name else self._session.body(party, answer)
        if body is None:
            self._errands.again(party, task)
            return
        self._take(party, errand, body)
        self._errands.came(party, task)

    def answer(self, task: Task) -> bytes:
        return self._way.match().to_bytes() if task.kind == "match" else self._way.answer(task)

    def _afresh(self) -> Errands:
        self._result: Matched | None = None
        self._parts: dict[str, list[bytes]] = {}
        self._waits_for: set[Errand] = set()  # in the end: parts of the slots, and then farewells
        self._farewell: set[Errand] = set()
        self._begun = False
        return Errands(self._draw)

    def _open(self, guest: str, task: Task, answer: bytes) -> None:
        if not self._session.open(guest, answer):
            self._begin_again()
            return
        self._errands.came(guest, task)
        if not self._session.unknown and not self._begun:
            self._begin()

    def _begin_again(self) -> None:
        """Somebody has lost its key, or has other rows: what is held is of no use."""
        for name in (_RESULT, HELD):
            self._storage.drop(self._session.place(name))
        self._session.begin_again()
        self._errands = self._afresh()

    def _begin(self) -> None:
        """All guests are known: begins, or goes on from where an earlier process stopped."""
        self._begun = True
        kept = self._storage.get(self._session.place(_RESULT))
        if kept is None:
            self._way.begin(self._session, self._errands)
            self._match_if_complete()
        else:
            self._tell(Matched.from_bytes(kept))

    def _to_ask(self, errand: Errand) -> Task:
        if errand.kind == "match":
            return self._task("match", self._errands.opaque(), b"")
        if errand.kind == "slots":
            return self._task("slots", errand.part, self._parts[errand.about][errand.part])
        if errand.kind == "done":
            return self._task("done", 0, PARTS.pack(len(self._parts[errand.about])))
        return self._task(*self._way.task(errand))

    def _take(self, party: str, errand: Errand, body: bytes) -> None:
        if errand.kind == "match":
            self._storage.put(self._session.place(_RESULT), body)
            self._tell(Matched.from_bytes(body))
        elif errand.kind == "slots":
            self._way.told(party, body)
            self._heard(errand)
        elif errand.kind == "done":
            self._heard(errand)
        else:
            self._way.take(party, errand, body)
            self._match_if_complete()

    def _match_if_complete(self) -> None:
        progress = self._way.progress
        if progress.done == progress.total:
            self._errands.add(self.name, Errand("match", self.name))

    def _tell(self, result: Matched) -> None:
        self._result = result
        self._storage.drop(self._session.place(HELD))
        if self._session.done:
            return
        self._parts = {guest: self._way.parts(guest, result, self._session) for guest in self.guests}
        self._farewell = {Errand("done", guest) for guest in self.guests}
        told = {Errand("slots", guest, part) for guest, parts in self._parts.items() for part in range(len(parts))}
        # Farewells last: a guest that loses its disk before all have their slots makes all of these void.
        self._wait_for((told - self._session.heard) or (self._farewell - self._session.heard))

    def _heard(self, errand: Errand) -> None:
        self._session.heard.add(errand)
        self._waits_for.discard(errand)
        self._session.done = self._farewell <= self._session.heard
        self._session.save()
        if not self._waits_for and not self._session.done:
            self._wait_for(self._farewell)

    def _wait_for(self, errands: set[Errand]) -> None:
        self._waits_for = set(errands)
        for errand in sorted(errands):
            self._errands.add(errand.about, errand)

    def _task(self, kind: str, number: int, content: bytes) -> Task:
        return Task(self._session.salt, self._session.round, kind, number, content)
