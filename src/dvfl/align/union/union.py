"""The union of all parties' rows by commutative encryption: every set passes through every party's scalar.

Guests stand in a ring. Guest i's chunks go to those after i, one by one, and then to the owner. So no guest ever sees
two sets under the same scalars, and none can tell whether others have anybody in common.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dvfl.align.errands import Errand, Errands
from dvfl.align.guest import AligningGuest
from dvfl.align.ids import IdRules
from dvfl.align.matching import Matched, Tagged, Tags, extended, matched
from dvfl.align.owner import HELD, AligningOwner
from dvfl.align.rows import Rows, ShuffledRows
from dvfl.align.sessions import OwnerSession
from dvfl.align.tasks import BadTask, Guest, Owner, Progress, Storage, Task, kept_secret
from dvfl.align.union.curve import (
    POINT,
    BadPoint,
    are_points,
    hashed,
    inverse,
    multiplied,
    product,
    scalar,
    scalar_commitment,
)
from dvfl.errors import RunFailed

SLOTS = 1 << 16  # slots of a message: 256 KB


def union_guest(
    name: str,
    rows: Rows,
    rules: IdRules,
    storage: Storage,
    *,
    secret: bytes,  # 32 fresh random bytes; those of an earlier start are kept
    pad: int = 1,  # its sizes are rounded up to multiples of it
    threads: int = 1,
    round: int = 0,  # of a delta: the rows are those that came since, all of them test rows
) -> Guest:
    """A guest's side."""
    return AligningGuest(name, rows, rules, storage, GuestUnion(threads), secret=secret, pad=pad, round=round)


def union_owner(
    name: str,
    rows: Rows,
    guests: tuple[str, ...],
    rules: IdRules,
    storage: Storage,
    *,
    secret: bytes,  # 32 fresh random bytes; those of an earlier start are kept
    reserve: int = 0,  # slots for rows that come later
    pad: int = 1,  # its own sizes are rounded up to multiples of it
    threads: int = 1,
    round: int = 0,  # of a delta, which uses the scalars of round 0
) -> Owner:
    """The owner's side; `rows` are the ids of its labels."""
    kept = kept_secret(storage, secret)
    way = _OwnerUnion(name, ShuffledRows(rows, kept, pad, name), guests, storage, reserve, threads)
    own_ids = way.rows.digest
    return AligningOwner(name, guests, rules, storage, way, secret=kept, fresh=secret, round=round, own_ids=own_ids)


class GuestUnion:
    """Points under the guest's scalar; slots in the order of its rows."""

    chunk = 2048  # points of a message: 64 KB

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def key(self, random64: bytes) -> bytes:
        return scalar(random64)

    def committed(self, key: bytes, session: bytes) -> bytes:
        return scalar_commitment(key, session)

    def offered(self, key: bytes, ids: list[bytes], session: bytes) -> bytes:
        return multiplied(hashed(ids, session, self._threads), key, self._threads)

    def multiplied(self, key: bytes, points: bytes) -> bytes:
        try:
            return multiplied(points, key, self._threads)
        except BadPoint:
            return b""  # the owner finds out whose they were

    def objections(self, rows: ShuffledRows, session: bytes, told: bytes) -> bytes:
        if len(told) % 4:
            raise BadTask(f"{len(told)} bytes are no whole number of slots")
        return b""

    def assembled(self, rows: ShuffledRows, session: bytes, told: list[bytes]) -> NDArray[np.int32]:
        slots = np.frombuffer(b"".join(told), np.int32)
        if len(slots) != sum(rows.sizes):
            raise BadTask(f"{len(slots)} slots for {sum(rows.sizes)} rows")
        return slots


class _OwnerUnion:
    """Chunks on their way round the ring; each is held after every step, with the number of steps it has made."""

    def __init__(
        self, name: str, rows: ShuffledRows, guests: tuple[str, ...], storage: Storage, reserve: int, threads: int
    ) -> None:
        self.rows = rows
        self._name, self._guests, self._storage, self._reserve, self._threads = name, guests, storage, reserve, threads
        self._steps: dict[Errand, int] = {}
        self._done = self._total = 0

    @property
    def progress(self) -> Progress:
        return Progress(self._done, self._total)

    def begin(self, session: OwnerSession, errands: Errands) -> None:
        self._session, self._errands = session, errands
        self._own, self._blind = (scalar(session.derived(purpose)) for purpose in ("scalar", "blind"))
        self._sizes = {guest: session.opened[guest].sizes for guest in self._guests} | {self._name: self.rows.sizes}
        self._pieces = {party: sizes.pieces(GuestUnion.chunk) for party, sizes in self._sizes.items()}
        chunks = [Errand("chunk", party, part) for party, pieces in self._pieces.items() for part in range(len(pieces))]
        self._steps = {chunk: (self._storage.get(self._place(chunk)) or b"\0")[0] for chunk in chunks}
        self._done, self._total = sum(self._steps.values()), sum(len(self._path(chunk)) for chunk in chunks)
        for chunk in chunks:
            self._send_on(chunk)

    def task(self, errand: Errand) -> tuple[str, int, bytes]:
        step, path = self._steps[errand], self._path(errand)
        if step == 0:
            return "offer", errand.part, b""
        own = errand.about == self._name
        kind = "multiply" if step < len(path) - 1 else "unblind" if own else "complete"
        return kind, self._errands.opaque(), self._held(errand)

    def take(self, party: str, errand: Errand, body: bytes) -> None:
        start, stop = self._pieces[errand.about][errand.part]
        if len(body) != (stop - start) * POINT:
            self._blame(party, errand, body)
        self._storage.put(self._place(errand), bytes([self._steps[errand] + 1]) + body)
        self._steps[errand] += 1
        self._done += 1
        self._send_on(errand)

    def answer(self, task: Task) -> bytes:
        if task.kind == "offer":
            ids = self.rows.ids(*self._pieces[self._name][task.number])
            return multiplied(hashed(ids, task.session, self._threads), self._blind, self._threads)
        own = self._own if task.kind == "complete" else product(self._own, inverse(self._blind))
        try:
            return multiplied(task.content, own, self._threads)
        except BadPoint:
            return b""

    def match(self) -> Matched:
        sets = {party: self._tags(party) for party in (*self._guests, self._name)}
        key = int.from_bytes(self._session.derived("slots", self._session.round)[:16], "little")
        draw = np.random.Generator(np.random.Philox(key=key))
        if self._session.round == 0:
            result = matched(sets, self._name, draw, self._reserve)
        else:
            before = self._storage.get(self._session.place("matched", -1)) or b""
            result = extended(Matched.from_bytes(before), {party: of.test for party, of in sets.items()}, draw)
        own = self.rows.in_order(np.concatenate(result.slots[self._name]))
        return replace(result, slots=result.slots | {self._name: own})

    def parts(self, guest: str, result: Matched, session: OwnerSession) -> list[bytes]:
        slots = np.concatenate(result.slots[guest])
        return [slots[start : start + SLOTS].tobytes() for start in range(0, len(slots), SLOTS)]

    def told(self, guest: str, body: bytes) -> None:
        """A guest has nothing to say to its slots."""

    def _path(self, chunk: Errand) -> tuple[str, ...]:
        """Who does something to it, in order."""
        if chunk.about == self._name:  # under a scalar of its own already: it may begin anywhere in the ring
            at = chunk.part % len(self._guests)
            return (self._name, *self._guests[at:], *self._guests[:at], self._name)
        at = self._guests.index(chunk.about)
        return (*self._guests[at:], *self._guests[:at], self._name)

    def _send_on(self, chunk: Errand) -> None:
        path = self._path(chunk)
        if self._steps[chunk] < len(path):
            self._errands.add(path[self._steps[chunk]], chunk)

    def _blame(self, party: str, chunk: Errand, body: bytes) -> None:
        """Raises, naming who gave what is no answer: the party itself, or the one whose points it could not use."""
        step = self._steps[chunk]
        if step and not body and not are_points(self._held(chunk)):
            raise RunFailed(f"{self._path(chunk)[step - 1]}: an answer with points that are not on the curve")
        start, stop = self._pieces[chunk.about][chunk.part]
        raise RunFailed(f"{party}: an answer of {len(body)} bytes of points, not {(stop - start) * POINT}")

    def _tags(self, party: str) -> Tagged:
        held = [self._held(Errand("chunk", party, part)) for part in range(len(self._pieces[party]))]
        tags: Tags = np.frombuffer(b"".join(held), np.uint8).reshape(-1, POINT)
        train = self._sizes[party].train
        return Tagged(tags[:train], tags[train:])

    def _held(self, chunk: Errand) -> bytes:
        held = self._storage.get(self._place(chunk))
        if held is None:
            raise RunFailed(f"{self._name}: what {chunk.about} had sent is gone from the disk; align again")
        return held[1:]

    def _place(self, chunk: Errand) -> str:
        return self._session.place(f"{HELD}{chunk.about}.{chunk.part}")
