"""A guest of a star: the server of a two-party intersection with the owner."""

import hashlib
import struct
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dvfl.align.guest import AligningGuest
from dvfl.align.ids import IdRules
from dvfl.align.rows import Rows, ShuffledRows
from dvfl.align.star.intersection import BadElement, library, offered, psi_key, responded
from dvfl.align.star.star_slots import Common, hashed_id, unpacked
from dvfl.align.tasks import BadTask, Guest, Storage

OBJECTIONS = struct.Struct("<I")


def star_guest(
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
    library()
    return AligningGuest(name, rows, rules, storage, GuestStar(threads), secret=secret, pad=pad, round=round)


class GuestStar:
    """Elements under the guest's key; slots under hashes of ids where the owner has them, the others in order."""

    chunk = 8192  # elements of a message: 264 KB

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._places = lru_cache(1)(_places)

    def key(self, random64: bytes) -> bytes:
        return psi_key(random64)

    def committed(self, key: bytes, session: bytes) -> bytes:
        return hashlib.blake2b(key, digest_size=32, key=session, person=b"dvfl psi key").digest()

    def offered(self, key: bytes, ids: list[bytes], session: bytes) -> bytes:
        return offered(key, ids, self._threads)

    def multiplied(self, key: bytes, points: bytes) -> bytes:
        try:
            return responded(key, points, self._threads)
        except BadElement:
            return b""

    def objections(self, rows: ShuffledRows, session: bytes, told: bytes) -> bytes:
        """How many of the rows that the owner has too are trained on here and not there, or the other way round."""
        part = unpacked(told)
        if not isinstance(part, Common):
            return OBJECTIONS.pack(0)
        places = self._found(rows, session, part)
        return OBJECTIONS.pack(int(((places < rows.sizes.train) != (part.slots < part.training)).sum()))

    def assembled(self, rows: ShuffledRows, session: bytes, told: list[bytes]) -> NDArray[np.int32]:
        slots = np.full(sum(rows.sizes), -1, np.int32)
        rest = [np.empty(0, np.int32)]
        for part in map(unpacked, told):
            if isinstance(part, Common):
                slots[self._found(rows, session, part)] = part.slots
            else:
                rest.append(part)
        free, given = np.flatnonzero(slots < 0), np.concatenate(rest)
        if len(free) != len(given):
            raise BadTask(f"{len(given)} slots for {len(free)} rows that the owner does not have")
        slots[free] = given
        return slots

    def _found(self, rows: ShuffledRows, session: bytes, part: Common) -> NDArray[np.intp]:
        """The places of these rows in the order of all."""
        place_of = self._places(rows, session)
        if any(one not in place_of for one in part.hashes):
            raise BadTask("slots for ids that are not here")
        return np.array([place_of[one] for one in part.hashes], np.intp)


def _places(rows: ShuffledRows, session: bytes) -> dict[bytes, int]:
    """Where in the order of the rows the id with a hash stands."""
    return {hashed_id(one, session): place for place, one in enumerate(rows.ids(0, sum(rows.sizes)))}
