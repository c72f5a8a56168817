"""A guest of a union: hands out its rows under its scalar, and multiplies what others hand out."""

from functools import lru_cache

import numpy as np

from dvfl.align.curve import POINT, BadPoint, hashed, multiplied, scalar, scalar_commitment
from dvfl.align.ids import IdRules, commitment
from dvfl.align.matching import Slots
from dvfl.align.rows import Rows, ShuffledRows, Sizes
from dvfl.align.sessions import Opened
from dvfl.align.tasks import BadTask, Storage, Task, derived, kept_secret
from dvfl.errors import RunFailed

CHUNK = 2048  # points of a message: 64 KB
SLOTS = 1 << 16  # slots of a message: 256 KB


class UnionGuest:
    """One guest. All it must not forget is a secret: scalar, shuffle and padding of a session are derived from it."""

    def __init__(
        self,
        name: str,
        rows: Rows,
        rules: IdRules,
        storage: Storage,
        *,
        secret: bytes,  # 32 fresh random bytes, for where none is kept
        pad: int = 1,  # its sizes are rounded up to multiples of it
        threads: int = 1,
        round: int = 0,  # of a delta: the rows are those that came since, all of them test rows
    ) -> None:
        self.name, self._rows, self._rules, self._storage = name, rows, rules, storage
        self._secret = kept_secret(storage, secret)
        self._pad, self._threads, self._round = pad, threads, round
        self._begun = lru_cache(1)(self._begin)

    @property
    def slots(self) -> Slots | None:
        """The slots of its rows in their own order, once all parties have theirs."""
        kept = self._storage.get(self._place("slots"))
        if kept is None:
            return None
        slots, train = np.frombuffer(kept[32:], np.int32), len(self._rows.train)
        return Slots(slots[:train], slots[train:])

    def answer(self, task: Task) -> bytes:
        """Does what the owner asks; raises BadTask where that is nothing it could ask."""
        if task.round != self._round:
            raise BadTask(f"of round {task.round} in round {self._round}")
        opened, rows, own = self._begun(task.session)
        if task.kind == "open":
            return opened.to_bytes()
        if task.kind == "offer":
            return opened.stamp + self._offered(task, rows, own)
        if task.kind == "multiply":
            return opened.stamp + self._multiplied(task, own)
        if task.kind == "slots":
            self._take(task, rows.sizes)
        elif task.kind == "done":
            self._finish(task, rows)
        else:
            raise BadTask(f"unknown kind {task.kind!r}")
        return opened.stamp

    def _begin(self, session: bytes) -> tuple[Opened, ShuffledRows, bytes]:
        if len(session) != 32:
            raise BadTask(f"a session of {len(session)} bytes; 32 are right")
        own = scalar(derived(self._secret, "scalar", session))
        rows = ShuffledRows(self._rows, derived(self._secret, "rows", session, self._round), self._pad, self.name)
        opened = Opened(commitment(self._rules, session), scalar_commitment(own, session), rows.digest, rows.sizes)
        return opened, rows, own

    def _offered(self, task: Task, rows: ShuffledRows, own: bytes) -> bytes:
        """A chunk of its own points, shuffled and under its scalar."""
        ids = rows.ids(*_piece(rows.sizes, CHUNK, task))
        return multiplied(hashed(ids, task.session, self._threads), own, self._threads)

    def _multiplied(self, task: Task, own: bytes) -> bytes:
        """Somebody's points under its scalar too; nothing where they are no points: the owner finds out who it was."""
        if not 0 < len(task.content) <= CHUNK * POINT:
            raise BadTask(f"{len(task.content)} bytes of points; at most {CHUNK * POINT} are right")
        try:
            return multiplied(task.content, own, self._threads)
        except BadPoint:
            return b""

    def _take(self, task: Task, sizes: Sizes) -> None:
        """A part of its slots, in the order of its shuffle."""
        start, stop = _piece(sizes, SLOTS, task)
        if len(task.content) != 4 * (stop - start):
            raise BadTask(f"{len(task.content)} bytes of slots; {4 * (stop - start)} are right")
        self._storage.put(self._place(f"part.{task.number}"), task.session + task.content)

    def _finish(self, task: Task, rows: ShuffledRows) -> None:
        """All parties have their slots: these are in force."""
        parts = [self._storage.get(self._place(f"part.{at}")) for at in range(len(rows.sizes.pieces(SLOTS)))]
        came = [part[32:] for part in parts if part is not None and part[:32] == task.session]
        if len(came) == len(parts):
            slots = rows.in_order(np.frombuffer(b"".join(came), np.int32))
            self._storage.put(self._place("slots"), task.session + np.concatenate(slots).tobytes())
            self._storage.drop(self._place("part."))
        elif (self._storage.get(self._place("slots")) or b"")[:32] != task.session:
            raise RunFailed(f"{self.name}: slots that had come are gone; align again")

    def _place(self, name: str) -> str:
        return f"align.{self._round}.{name}"


def _piece(sizes: Sizes, most: int, task: Task) -> tuple[int, int]:
    pieces = sizes.pieces(most)
    if not 0 <= task.number < len(pieces):
        raise BadTask(f"part {task.number} of {len(pieces)}")
    return pieces[task.number]
