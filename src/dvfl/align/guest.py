"""A guest's side of an alignment, by whichever way: answers what the owner asks, and forgets nothing that it said."""

import struct
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dvfl.align.ids import IdRules, commitment
from dvfl.align.matching import Slots
from dvfl.align.rows import Rows, ShuffledRows
from dvfl.align.sessions import Opened
from dvfl.align.tasks import MOST_BYTES, BadTask, Storage, Task, derived, kept_secret
from dvfl.errors import RunFailed

PARTS = struct.Struct("<I")  # what a farewell carries: of how many parts the slots were


class GuestWay(Protocol):
    """How ids are hidden, and how slots are told."""

    chunk: int  # rows of a message

    def key(self, random64: bytes) -> bytes: ...
    def committed(self, key: bytes, session: bytes) -> bytes: ...
    def offered(self, key: bytes, ids: list[bytes], session: bytes) -> bytes:
        """Ids as only this guest can hide them, packed."""

    def multiplied(self, key: bytes, points: bytes) -> bytes:
        """What others hid, hidden by this guest too; nothing where that cannot be."""

    def objections(self, rows: ShuffledRows, session: bytes, told: bytes) -> bytes:
        """What is to be said against a part of the slots; raises BadTask where it is none."""

    def assembled(self, rows: ShuffledRows, session: bytes, told: list[bytes]) -> NDArray[np.int32]:
        """The slots by place in the order of the rows."""


class _Begun(NamedTuple):
    opened: Opened
    rows: ShuffledRows
    key: bytes


class AligningGuest:
    """One guest. All it must not forget is a secret: key, order and padding of every session are derived from it."""

    def __init__(
        self,
        name: str,
        rows: Rows,
        rules: IdRules,
        storage: Storage,
        way: GuestWay,
        *,
        secret: bytes,
        pad: int,
        round: int,
    ) -> None:
        self.name, self._rows, self._rules, self._storage, self._way = name, rows, rules, storage, way
        self._secret, self._pad, self._round = kept_secret(storage, secret), pad, round
        self._begun = lru_cache(1)(self._begin)

    @property
    def slots(self) -> Slots | None:
        kept = self._storage.get(self._place("slots"))
        if kept is None:
            return None
        slots, train = np.frombuffer(kept[32:], np.int32), len(self._rows.train)
        return Slots(slots[:train], slots[train:])

    def answer(self, task: Task) -> bytes:
        if task.round != self._round:
            raise BadTask(f"it is of round {task.round}, and this is round {self._round}")
        if len(task.session) != 32 or len(task.content) > MOST_BYTES:
            raise BadTask(f"a session of {len(task.session)} bytes, a content of {len(task.content)}")
        begun = self._begun(task.session)
        if task.kind == "open":
            return begun.opened.to_bytes()
        if task.kind == "offer":
            return begun.opened.stamp + self._offered(task, begun)
        if task.kind == "multiply":
            return begun.opened.stamp + self._way.multiplied(begun.key, task.content)
        if task.kind == "slots":
            return begun.opened.stamp + self._taken(task, begun)
        if task.kind == "done":
            self._finish(task, begun)
            return begun.opened.stamp
        raise BadTask(f"nobody asks for {task.kind!r}")

    def _begin(self, session: bytes) -> _Begun:
        key = self._way.key(derived(self._secret, "key", session))
        rows = ShuffledRows(self._rows, derived(self._secret, "rows", session, self._round), self._pad, self.name)
        hidden = self._way.committed(key, session)
        return _Begun(Opened(commitment(self._rules, session), hidden, rows.digest, rows.sizes), rows, key)

    def _offered(self, task: Task, begun: _Begun) -> bytes:
        pieces = begun.rows.sizes.pieces(self._way.chunk)
        if not 0 <= task.number < len(pieces):
            raise BadTask(f"part {task.number} of {len(pieces)}")
        return self._way.offered(begun.key, begun.rows.ids(*pieces[task.number]), task.session)

    def _taken(self, task: Task, begun: _Begun) -> bytes:
        objections = self._way.objections(begun.rows, task.session, task.content)
        self._storage.put(self._place(f"told.{task.number}"), task.session + task.content)
        return objections

    def _finish(self, task: Task, begun: _Begun) -> None:
        """All parties have their slots: these are in force."""
        if (self._storage.get(self._place("slots")) or b"")[:32] == task.session:
            return
        if len(task.content) != PARTS.size:
            raise BadTask("a farewell that does not say of how many parts the slots were")
        parts = [self._storage.get(self._place(f"told.{part}")) for part in range(*PARTS.unpack(task.content))]
        told = [part[32:] for part in parts if part is not None and part[:32] == task.session]
        if len(told) < len(parts):
            raise RunFailed(f"{self.name}: slots that had come are gone from the disk; align again")
        slots = begun.rows.in_order(self._way.assembled(begun.rows, task.session, told))
        self._storage.put(self._place("slots"), task.session + np.concatenate(slots).tobytes())
        self._storage.drop(self._place("told."))

    def _place(self, name: str) -> str:
        return f"align.{self._round}.{name}"
