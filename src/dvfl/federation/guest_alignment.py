"""A guest's part of alignment on its own files: ids from its tables, slots into its state folder."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from dvfl.align.ids import IdRules
from dvfl.align.matching import Slots
from dvfl.align.star import StarGuest
from dvfl.align.tasks import Guest, Storage, Task
from dvfl.align.union import UnionGuest
from dvfl.federation.id_files import LATER, SLOTS, OwnIds, later_ids, own_ids, write_slots
from dvfl.federation.settings import Alignment, GuestData


class FiledGuest:
    """A guest whose slots are in a file before it says that it has them."""

    def __init__(self, guest: Guest, file: Callable[[Slots], None]) -> None:
        self._guest, self._file = guest, file

    @property
    def slots(self) -> Slots | None:
        return self._guest.slots

    def answer(self, task: Task) -> bytes:
        before = self._guest.slots is not None
        answer = self._guest.answer(task)
        slots = self._guest.slots
        if slots is not None and not before:
            self._file(slots)
        return answer


def guest_for(
    name: str, folder: Path, data: GuestData, alignment: Alignment, storage: Storage, round: int
) -> FiledGuest:
    """The guest of one round: 0 aligns all its rows, later ones those that have no slot yet."""
    rules, state = IdRules(alignment.case), folder / "state"
    test = None if data.test_table is None else folder / data.test_table
    own = own_ids(folder / data.table, test, data.id, rules)
    if round:
        own = later_ids(own, state, rules)
    kind = StarGuest if alignment.way == "star" else UnionGuest
    guest = kind(
        name,
        own.rows,
        rules,
        storage,
        secret=secrets.token_bytes(32),
        pad=alignment.pad,
        threads=threads(),
        round=round,
    )
    return FiledGuest(guest, lambda slots: _write(state, own, slots, round))


def threads() -> int:
    """The cores that this process is given, or what it was told to take."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else len(os.sched_getaffinity(0))


def _write(state: Path, own: OwnIds, slots: Slots, round: int) -> None:
    if round:
        write_slots(state / LATER, own, slots, earlier=state / LATER)
    else:
        write_slots(state / SLOTS, own, slots)
