"""What owner and guests say to each other while they align, whichever way they do it."""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dvfl.align.matching import Matched, Slots

SECRET = "align.secret"  # where a party keeps what all its sessions follow from
MOST_BYTES = 512 << 10  # of a task's content or an answer; the wire takes no more


@dataclass(frozen=True)
class Task:
    """Something the owner asks of one party. Asked again, it is answered the same way."""

    session: bytes  # 32 random bytes: the salt of its hashes, and what scalars and shuffles are derived for
    round: int  # 0, or the number of the delta by which later rows are aligned
    kind: str
    number: int  # of a guest's own part, or drawn at random where the guest shall not know what it works on
    content: bytes = b""


class Progress(NamedTuple):
    """Answers that came, of those that are known to be needed."""

    done: int
    total: int


class BadTask(Exception):
    """A task that cannot be answered: it came from no owner that follows the protocol, or from another version."""


class Storage(Protocol):
    """Where a party keeps things under names. After a kill, what was put last is there whole."""

    def put(self, name: str, content: bytes) -> None: ...
    def get(self, name: str) -> bytes | None: ...
    def drop(self, prefix: str) -> None:
        """Forgets what was put under names that begin so."""


class Guest(Protocol):
    """Answers tasks, in any thread and in any order; what it must not forget is in its storage."""

    @property
    def slots(self) -> Slots | None:
        """The slots of its rows in their own order, once all parties have theirs."""

    def answer(self, task: Task) -> bytes: ...


class Owner(Protocol):
    """Says what to ask whom next. It is itself one of the parties: its tasks are its own computing.

    `wanted` and `took` belong to one thread; `answer` may run in others meanwhile. A task that was given out is not
    given out again: send it again until its answer comes. After a restart, tasks that were under way are wanted again.
    """

    @property
    def parties(self) -> tuple[str, ...]:
        """The guests and the owner itself."""

    @property
    def progress(self) -> Progress: ...

    @property
    def finished(self) -> bool:
        """All guests have their slots and know that all others have theirs."""

    @property
    def result(self) -> Matched:
        """Slots of the owner's labels and who is present where; there once the slots are drawn."""

    def wanted(self, party: str) -> Task | None:
        """The next task for that party, if there is one now; several may be under way."""

    def took(self, party: str, task: Task, answer: bytes) -> None:
        """Takes an answer. One that came before, or that belongs to a session that was given up, changes nothing."""

    def answer(self, task: Task) -> bytes:
        """Does a task of the owner's own."""


def derived(secret: bytes, *purpose: str | int | bytes) -> bytes:
    """64 bytes of their own for every purpose, from a secret of at most 64."""
    return hashlib.blake2b(repr(purpose).encode(), key=secret).digest()


def kept_secret(storage: Storage, fresh: bytes) -> bytes:
    """The secret that an earlier start put there, or else the fresh one, which is there from now on."""
    kept = storage.get(SECRET)
    if kept is None:
        storage.put(SECRET, fresh)
    return kept or fresh
