"""What hosts gave the owner for its training, slot by slot: good for predictions as long as hosts vouch for it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.protocol.plan import Plan
from dvfl.federation.protocol.wire import BadMessage, Chunk, Predicted, decode
from dvfl.federation.protocol.wire_types import ABSENT, FRESH

Stored = Callable[[str], bytes | None]  # what the owner has stored under a name

IN_MEMORY = 1 << 30  # bytes of all hosts' rows, up to which they are held


def chunk_name(host: str, pass_number: int, chunk: int) -> str:
    """Under which an owner stores a chunk."""
    return f"chunk.{host}.{pass_number:02d}.{chunk:06d}"


@dataclass(frozen=True)
class CollectedRows:
    """One frozen host's encodings of all slots, with every guest that it had."""

    host: str
    run: str
    frozen: str
    values: NDArray[np.float32]  # (all slots, W_h)
    present: NDArray[np.bool_]  # (all slots, guests)

    def answer(self, slots: NDArray[np.int32], age_s: float) -> Predicted:
        """What the host would answer, as it said that long ago."""
        states = np.where(self.present[slots], FRESH, ABSENT).astype(np.uint8)
        ages = np.where(states == FRESH, np.float32(age_s), np.float32(-1.0))
        return Predicted(self.host, self.run, self.frozen, slots, self.values[slots], states, ages)


def read_collected(stored: Stored, plan: Plan, hosts: dict[str, str]) -> dict[str, CollectedRows]:
    """Of these hosts, given with their hashes, those whose chunks are all there; nobody's where they are too many."""
    if 4 * plan.host_width * plan.all_slots * len(hosts) > IN_MEMORY:
        return {}
    found = {host: _read(stored, plan, host, frozen) for host, frozen in hosts.items()}
    return {host: rows for host, rows in found.items() if rows is not None}


def _read(stored: Stored, plan: Plan, host: str, frozen: str) -> CollectedRows | None:
    values = np.zeros((plan.all_slots, plan.host_width), np.float32)
    present, first, number = np.zeros((plan.all_slots, len(plan.guests)), bool), 0, 0
    while first < plan.all_slots:
        try:
            chunk = decode(stored(chunk_name(host, 0, number)) or b"", Chunk)
        except BadMessage:
            return None
        last = first + len(chunk.values)
        if (chunk.run, chunk.frozen, chunk.first) != (plan.run, frozen, first) or last > plan.all_slots:
            return None
        values[first:last], present[first:last] = chunk.values, chunk.present
        first, number = last, number + 1
    return CollectedRows(host, plan.run, frozen, values, present)
