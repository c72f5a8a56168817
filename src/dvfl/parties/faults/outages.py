"""Recorded outages: who was down in which rounds, as somebody wrote it down."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Outage:
    """One party, or one link such as `guest-1>host-2`, down in the rounds `down` .. `up` - 1."""

    party: str
    down: int
    up: int | None  # None: for good


@dataclass(frozen=True)
class Outages:
    """All that a record holds, in its order; outages of one party may overlap."""

    source: str  # where the record came from
    rows: tuple[Outage, ...]

    @property
    def parties(self) -> tuple[str, ...]:
        """Who is ever down, each once, in the record's order."""
        return tuple(self._of)

    def down(self, party: str, rounds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the party is down in each of the rounds."""
        rows = self._of.get(party, ())
        begun = np.sort([row.down for row in rows])
        ended = np.sort([row.up for row in rows if row.up is not None])
        # More have begun than ended: this holds for overlapping outages too.
        return np.searchsorted(begun, rounds, "right") > np.searchsorted(ended, rounds, "right")

    def gone_from(self, party: str) -> int | None:
        """The round from which the party is never up again; None where it always comes back."""
        rows = self._of.get(party, ())
        first = min((row.down for row in rows if row.up is None), default=None)
        if first is None:
            return None
        for up, down in sorted(((row.up, row.down) for row in rows if row.up is not None), reverse=True):
            if up < first:
                break
            first = min(first, down)  # this outage ends inside the next
        return first

    @cached_property
    def _of(self) -> dict[str, list[Outage]]:
        rows: dict[str, list[Outage]] = {}
        for row in self.rows:
            rows.setdefault(row.party, []).append(row)
        return rows


class Timetable:
    """The recorded outages of the same entities in many replicas, looked up by round."""

    def __init__(self, outages: Sequence[Outages | None], entities: Sequence[str]) -> None:
        none = Outages("", ())
        given = [none if record is None else record for record in outages]
        records = {id(record): record for record in given}  # replicas share theirs
        order = list(records)
        self._which = np.array([order.index(id(record)) for record in given], np.int64)
        self._pages = [_page(record, entities) for record in records.values()]
        self.active = any(not up.all() for _, up, _ in self._pages)

    def up(self, t: int) -> NDArray[np.bool_]:
        """Whether each is up in round t: (replicas, entities)."""
        rows = [up[turns.searchsorted(t, "right") - 1] for turns, up, _ in self._pages]
        return np.stack(rows)[self._which]

    def gone(self, t: int) -> NDArray[np.bool_]:
        """Whether each is down in round t and in all that follow: (replicas, entities)."""
        return np.stack([end <= t for _, _, end in self._pages])[self._which]


_Page = tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]


def _page(record: Outages, entities: Sequence[str]) -> _Page:
    """Rounds in which something changes; who is up from each on, (turns, entities); when each goes for good."""
    known = set(entities)
    rows = [row for row in record.rows if row.party in known]
    turns = {0, *(row.down for row in rows), *(row.up for row in rows if row.up is not None)}
    rounds = np.array(sorted(turns), np.int64)
    up = np.ones((len(rounds), len(entities)), bool)
    for column, entity in enumerate(entities):
        up[:, column] = ~record.down(entity, rounds)
    ends = [record.gone_from(entity) for entity in entities]
    return rounds, up, np.array([np.inf if end is None else end for end in ends], np.float64)
