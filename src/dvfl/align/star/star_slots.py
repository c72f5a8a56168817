"""How a star tells slots: under hashes of ids where the guest knows that the owner has them, the others in order."""

import hashlib
import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dvfl.align.rows import Rows
from dvfl.align.tasks import BadTask

_AT_ONCE = 1 << 14  # slots of a message: 320 KB with the hashes
_HASH = 16  # bytes
_COMMON, _REST = b"c", b"r"  # what a part begins with
_TRAINING = struct.Struct("<I")
_ENTRY = np.dtype([("hash", np.uint8, _HASH), ("slot", "<i4")])


class Common(NamedTuple):
    """Rows that both have."""

    hashes: list[bytes]
    slots: NDArray[np.int32]
    training: int  # slots below it are trained on


def packed(ids: Rows, own: NDArray[np.int32], theirs: NDArray[np.int32], training: int, session: bytes) -> list[bytes]:
    """What a guest is told of its slots, in parts. `own` are the slots of the owner's ids, -1 where there is none."""
    common = np.flatnonzero(np.isin(own, theirs))
    entries = np.empty(len(common), _ENTRY)
    hashes = b"".join([hashed_id(_id(ids, int(row)), session) for row in common])
    entries["hash"], entries["slot"] = np.frombuffer(hashes, np.uint8).reshape(-1, _HASH), own[common]
    entries = entries[np.argsort(entries["slot"])]  # an order that says nothing
    rest = theirs[~np.isin(theirs, own)]
    begins = _COMMON + _TRAINING.pack(training)
    told = [begins + entries[start : start + _AT_ONCE].tobytes() for start in range(0, len(entries), _AT_ONCE)]
    return told + [_REST + rest[start : start + _AT_ONCE].tobytes() for start in range(0, len(rest), _AT_ONCE)]


def unpacked(part: bytes) -> Common | NDArray[np.int32]:
    """A part as it was packed: what both have, or the slots of other rows."""
    content = part[1:] if part[:1] == _REST else part[1 + _TRAINING.size :]
    if part[:1] not in (_COMMON, _REST) or len(content) % (4 if part[:1] == _REST else _ENTRY.itemsize):
        raise BadTask(f"{len(part)} bytes are no slots")
    if part[:1] == _REST:
        return np.frombuffer(content, np.int32)
    entries = np.frombuffer(content, _ENTRY)
    return Common([one.tobytes() for one in entries["hash"]], entries["slot"], *_TRAINING.unpack_from(part, 1))


def hashed_id(one: bytes, session: bytes) -> bytes:
    """What both sides call an id that both have."""
    return hashlib.blake2b(one, digest_size=_HASH, key=session, person=b"dvfl common").digest()


def _id(ids: Rows, row: int) -> bytes:
    train = len(ids.train)
    return ids.train[row] if row < train else ids.test[row - train]
