"""The owner's side of an alignment, whichever way it goes: who is asked what, what came, and what is told in the end."""

from collections import defaultdict
from typing import NamedTuple, Protocol

import numpy as np

from dvfl.align.ids import IdRules
from dvfl.align.matching import Matched
from dvfl.align.sessions import OwnerSession
from dvfl.align.tasks import Progress, Storage, Task
from dvfl.errors import RunFailed

_RESULT, _HELD = "matched", "held."


class Errand(NamedTuple):
    """Something to ask of a party: about whose rows, and which part of them."""

    kind: str
    about: str
    part: int


class Errands:
    """What is ready to be asked of whom, and what is under way. Drawn at random, so that its order says nothing."""

    def __init__(self, draw: np.random.Generator) -> None:
        self._draw = draw
        self._ready: dict[str, list[Errand]] = defaultdict(list)
        self._under_way: dict[tuple[str, str, int], Errand] = {}
        self.done = self.total = 0

    def add(self, party: str, errand: Errand) -> None:
        self._ready[party].append(errand)

    def next(self, party: str) -> Errand | None:
        ready = self._ready[party]
        if not ready:
            return None
        at = int(self._draw.integers(len(ready)))
        ready[at], ready[-1] = ready[-1], ready[at]
        return ready.pop()

    def opaque(self) -> int:
        """A number that says nothing."""
        return int(self._draw.integers(2**62))

    def gave(self, party: str, task: Task, errand: Errand) -> None:
        self._under_way[party, task.kind, task.number] = errand

    def asked(self, party: str, task: Task) -> Errand | None:
        return self._under_way.get((party, task.kind, task.number))

    def came(self, party: str, task: Task) -> None:
        self._under_way.pop((party, task.kind, task.number))
        self.done += 1

    def again(self, party: str, task: Task) -> None:
        """Back to the ready ones: its answer was of no use."""
        self.add(party, self._under_way.pop((party, task.kind, task.number)))


class Way(Protocol):
    """How rows are matched. What it holds is in the storage, under the session's places."""

    def begin(self, session: OwnerSession, errands: Errands) -> None:
        """All guests are known: goes on from what is held, and says what is to be asked."""

    @property
    def complete(self) -> bool:
        """All that is needed to match has come."""

    def task(self, errand: Errand) -> tuple[str, int, bytes]:
        """Kind, number and content of what to ask."""

    def take(self, party: str, errand: Errand, body: bytes) -> None:
        """Holds an answer, and says what is to be asked now; raises, naming whoever it was, where it cannot be right."""

    def answer(self, task: Task) -> bytes:
        """The owner's own computing, in any thread."""

    def match(self) -> Matched:
        """Slots for all, with the owner's in the order of its rows; in any thread."""

    def parts(self, guest: str, result: Matched) -> list[tuple[str, bytes]]:
        """What the guest is told, as kinds and contents of tasks."""

    def told(self, guest: str, body: bytes) -> None:
        """Its answer to such a part; raises where the guest objects."""


class AligningOwner:
    """The owner, by some way. See `tasks.Owner` for how it is driven."""

    def __init__(
        self,
        name: str,
        guests: tuple[str, ...],
        rules: IdRules,
        storage: Storage,
        secret: bytes,
        round: int,
        own: bytes,  # a commitment to its own ids
        way: Way,
    ) -> None:
        self.name, self.guests, self._storage, self._way = name, guests, storage, way
        self._session = OwnerSession(guests, rules, storage, secret, round, own)
        self._result: Matched | None = None
        if self._session.changed:
            self._begin_again()
        else:
            self._restore()

    @property
    def parties(self) -> tuple[str, ...]:
        return (*self.guests, self.name)

    @property
    def progress(self) -> Progress:
        return Progress(self._errands.done, self._errands.total)

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
            return None if self._errands.asked(party, task) else self._given(party, task, Errand("open", party, 0))
        errand = self._errands.next(party)
        return None if errand is None else self._given(party, self._asked(errand), errand)

    def took(self, party: str, task: Task, answer: bytes) -> None:
        errand = self._errands.asked(party, task)
        if errand is None or (task.session, task.round) != (self._session.salt, self._session.round):
            return
        if errand.kind == "open":
            self._opened(party, answer)
            return
        body = answer if party == self.name else self._session.body(party, answer)
        if body is None:
            self._errands.again(party, task)
            return
        self._take(party, errand, body)
        self._errands.came(party, task)
        self._go_on()

    def answer(self, task: Task) -> bytes:
        return self._way.match().to_bytes() if task.kind == "match" else self._way.answer(task)

    def _opened(self, guest: str, answer: bytes) -> None: ...
