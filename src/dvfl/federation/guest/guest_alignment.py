"""A guest's part of alignment on its own files: ids from its tables, slots into its state folder."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from dvfl.align.ids import IdRules
from dvfl.align.matching import Slots
from dvfl.align.star.star_guest import star_guest
from dvfl.align.tasks import Guest, Storage, Task
from dvfl.align.union.union import union_guest
from dvfl.federation.guest.alignment_desk import Desk
from dvfl.federation.keys.sealing import identity
from dvfl.federation.party.runtime import Surroundings
from dvfl.federation.party.settings import Federation, GuestFile
from dvfl.federation.party.tasks import threads
from dvfl.federation.protocol.dropping import Dropped
from dvfl.federation.tables.id_files import LATER, SLOTS, OwnIds, later_ids, own_ids, write_slots
from dvfl.federation.transport.accounts import ALIGN
from dvfl.federation.transport.line import GuestLine

_LOOK_S = 0.2


class GuestAlignment:
    """Answers the owner's letters as long as the guest runs: later rows are aligned while it trains."""

    def __init__(
        self,
        folder: Path,
        federation: Federation,
        party: GuestFile,
        storage: Storage,
        here: Surroundings,
        log: Callable[[str], None],
    ) -> None:
        self._folder, self._federation, self._party, self._storage = folder, federation, party, storage
        self.counts = {"messages_dropped": 0}
        own = identity(folder, party.party, "guest", federation.name)
        self._desk = Desk(own, federation.owner, self._guest, here, Dropped(self.counts, log))
        self._here = here

    @property
    def done(self) -> bool:
        """Whether its rows have slots."""
        return (self._folder / "state" / SLOTS).exists()

    async def serve(self, lines: Mapping[str, GuestLine]) -> None:
        """Answers on all lines from now on. Ids that cannot be aligned are refused before anybody asks."""
        if not self.done:
            self._desk.know(0, await self._here.work(partial(self._guest, 0)))
        for line in lines.values():
            await line.serve(ALIGN, self._desk.answer)

    async def slots(self) -> None:
        """Waits for them."""
        while not self.done:
            await asyncio.sleep(_LOOK_S)
        self._desk.forget(0)

    async def fail(self) -> None:
        """Raises what went wrong in an answer."""
        await self._desk.failed

    def _guest(self, round: int) -> Guest:
        """The guest of one round: 0 aligns all its rows, later ones those that have no slot yet."""
        data, alignment, state = self._party.data, self._federation.alignment, self._folder / "state"
        rules = IdRules(alignment.case)
        test = None if data.test_table is None else self._folder / data.test_table
        own = own_ids(self._folder / data.table, test, data.id, rules)
        if round:
            own = later_ids(own, state, rules)
        side = star_guest if alignment.way == "star" else union_guest
        guest = side(
            self._party.party,
            own.rows,
            rules,
            self._storage,
            secret=secrets.token_bytes(32),
            pad=alignment.pad,
            threads=threads(),
            round=round,
        )
        return _FiledGuest(guest, partial(_write, state, own, round))


class _FiledGuest:
    """A guest whose slots are in a file before it says that it has them."""

    def __init__(self, guest: Guest, file: Callable[[Slots], None]) -> None:
        self._guest, self._file = guest, file

    @property
    def slots(self) -> Slots | None:
        return self._guest.slots

    def answer(self, task: Task) -> bytes:
        answer = self._guest.answer(task)
        if task.kind == "done" and self._guest.slots is not None:
            self._file(self._guest.slots)
        return answer


def _write(state: Path, own: OwnIds, round: int, slots: Slots) -> None:
    if round:
        write_slots(state / LATER, own, slots, earlier=state / LATER)
    else:
        write_slots(state / SLOTS, own, slots)
