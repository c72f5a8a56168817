"""The owner of a union: sends every set round the ring of guests, adds its own scalar last, and matches what comes out."""

from dvfl.align.ids import IdRules
from dvfl.align.rows import Rows
from dvfl.align.tasks import Owner, Storage


def union_owner(
    name: str,
    rows: Rows,
    guests: tuple[str, ...],
    rules: IdRules,
    storage: Storage,
    *,
    secret: bytes,  # 32 fresh random bytes, for where none is kept
    reserve: int = 0,  # slots for rows that come later
    pad: int = 1,  # its own sizes are rounded up to multiples of it
    threads: int = 1,
    round: int = 0,  # of a delta, which uses the scalars of round 0
) -> Owner:
    """The owner's side; `rows` are the ids of its labels."""
    raise NotImplementedError
