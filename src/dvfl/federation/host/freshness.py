"""Which of the rows that a host holds are what its guests would answer now, by what guests say of themselves.

A guest says again and again which weights and tables it encodes with (`origin`). Rows that were made from the same are
the same, so nobody needs to ask for them again.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.host.host import Frozen
from dvfl.federation.protocol.plan import Plan
from dvfl.federation.protocol.wire import Fresh, Here

VOUCHED_S = 1.0  # for which a guest's word counts
UNKNOWN, SAME, LACKS = range(3)  # of a slot: nothing is known; what is held is right; the guest does not have it

Marks = NDArray[np.uint8]


class Vouched(NamedTuple):
    """What guests' last words say of some slots."""

    marks: Marks  # (slots, guests)
    ages_s: NDArray[np.float32]  # (guests,): since each was asked for
    counts: NDArray[np.bool_]  # (guests,): it is recent, and the guest has not been silent since


@dataclass
class _Word:
    """A guest's last word, and which slots it covers."""

    frozen: str
    origin: str
    marks: Marks  # (all slots,)
    asked_s: float = 0.0
    silent: bool = False


@dataclass
class Vouching:
    """What guests have said to one host. Nothing of it outlives the process but what a sweep proves."""

    _words: dict[str, _Word] = field(default_factory=dict)

    def said(self, frozen: Frozen | None, guest: str, here: Here, asked_s: float) -> None:
        """A guest answered what it was asked at that time."""
        if frozen is None or guest not in frozen.guests or here.run != frozen.plan.run or not here.origin:
            self._words.pop(guest, None)
            return
        word = self._words.get(guest)
        if word is None or (word.frozen, word.origin) != (frozen.hash, here.origin):
            word = self._words[guest] = _Word(frozen.hash, here.origin, _swept(frozen, guest, here.origin))
        word.asked_s, word.silent = asked_s, False

    def silent(self, guest: str) -> None:
        """It did not answer, so what it said before counts no more."""
        if guest in self._words:
            self._words[guest].silent = True

    def of(self, frozen: Frozen, slots: NDArray[np.int32], now_s: float) -> Vouched:
        """What is known of some slots."""
        guests = frozen.plan.guests
        marks, ages = np.zeros((len(slots), len(guests)), np.uint8), np.zeros(len(guests), np.float32)
        counts = np.zeros(len(guests), bool)
        for number, guest in enumerate(guests):
            word = self._words.get(guest.name)
            if word is not None and word.frozen == frozen.hash:
                age_s = ages[number] = now_s - word.asked_s
                marks[:, number] = word.marks[slots]
                counts[number] = not word.silent and age_s <= VOUCHED_S
        return Vouched(marks, ages, counts)

    def since_all_s(self, frozen: Frozen | None, now_s: float) -> float:
        """How long ago all guests in a frozen host's encodings said that nothing has changed; -1: one does not."""
        ages = [-1.0] if frozen is None else [self._since_s(frozen, guest, now_s) for guest in frozen.guests]
        return -1.0 if not ages or min(ages) < 0 else max(ages)

    def _since_s(self, frozen: Frozen, guest: str, now_s: float) -> float:
        word = self._words.get(guest)
        if word is None or word.silent or (word.frozen, word.origin) != (frozen.hash, frozen.guests[guest].origin):
            return -1.0
        age_s = now_s - word.asked_s
        return age_s if age_s <= VOUCHED_S else -1.0

    def kept(self, frozen: Frozen, asked: NDArray[np.int32], answer: Fresh) -> None:
        """The host has put a guest's answer for some slots into its table."""
        word = self._words.get(answer.guest)
        if word is None or word.frozen != frozen.hash:
            return
        if answer.origin != word.origin:  # made before the guest's last word, or after it
            word.marks[answer.slots] = UNKNOWN
            return
        # A table takes nothing newer in the same second: what it holds now may be another answer's.
        held = frozen.training.register(answer.guest).values[answer.slots]
        word.marks[asked] = LACKS
        word.marks[answer.slots] = np.where((held == answer.values).all(1), SAME, UNKNOWN)


def asked_epoch(plan: Plan) -> int:
    """Under which rows are held that were asked for; one past that of the final sweep."""
    return plan.guest_epochs + 2


def sweep_held(frozen: Frozen, guest: str) -> NDArray[np.bool_]:
    """Which slots are held as the guest's final sweep had them, (all slots,)."""
    own, register = frozen.guests[guest], frozen.training.register(guest)
    swept, theirs = register.steps >> 32 == frozen.plan.guest_epochs + 1, register.incarnations == own.swept_by
    found: NDArray[np.bool_] = np.logical_and(swept, theirs)
    return found


def _swept(frozen: Frozen, guest: str, origin: str) -> Marks:
    """What a guest's sweep proves, where it was made from the same: it had all rows that the guest has."""
    marks = np.full(frozen.plan.all_slots, UNKNOWN, np.uint8)
    own, register = frozen.guests[guest], frozen.training.register(guest)
    if origin == own.origin:
        marks[register.steps >> 32 != asked_epoch(frozen.plan)] = LACKS
        marks[sweep_held(frozen, guest)] = SAME
    return marks
