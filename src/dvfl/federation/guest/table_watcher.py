"""A guest's files as they are now: read again once they have changed, with slots of rows that were aligned later."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from dvfl.errors import RunFailed, UserError
from dvfl.federation.guest.guest_training import Rows
from dvfl.federation.party.settings import Federation, GuestFile
from dvfl.federation.tables.id_files import LATER, slots_file
from dvfl.federation.tables.table import Schema, open_table

_State = tuple[tuple[int, int] | None, ...]  # size and time of each file, None for one that is not there


class CurrentRows:
    """Made before the tables are opened for training, so that no change after that is missed."""

    def __init__(self, folder: Path, federation: Federation, party: GuestFile, log: Callable[[str], None]) -> None:
        data, alignment = party.data, federation.alignment
        self._state, self._log = folder / "state", log
        self._tables = [folder / data.table] + ([] if data.test_table is None else [folder / data.test_table])
        self._slots, later = slots_file(folder, data.slots, alignment), self._state / LATER
        self._later = later
        values = federation.guests[party.party].values
        self._read = partial(open_table, id_column=data.id, slots=self._slots, values=values, some=True)
        self._seen: _State | None = None if later.exists() else self._now()

    def look(self, schema: Schema) -> list[Rows] | None:
        """The tables as they are, by the columns of training; None where they have not changed since the last look.

        Files that cannot be used, such as one that is just being written, are looked at again when they change again.
        """
        now = self._now()
        if now == self._seen:
            return None
        self._seen = now
        later = self._later if self._later.exists() else None
        try:
            return [
                self._read(path, prepared=self._state / f"current-{number}", schema=schema, later=later)
                for number, path in enumerate(self._tables)
            ]
        except (UserError, RunFailed) as error:
            self._log(f"rows are encoded as they were before: {error}")
            return None

    def _now(self) -> _State:
        return tuple(_state(path) for path in (*self._tables, self._slots, self._later))


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
