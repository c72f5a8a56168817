"""What a frozen host makes of rows as they are now: what guests have just encoded, what it holds, and what is absent.

Rows that guests encode for a prediction go into the host's tables, under an epoch past all others and, in place of the
iteration, the second in which they came: so what is held has an age, row by row, and keeps it through restarts.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.host.freshness import SAME, Vouched, asked_epoch
from dvfl.federation.host.host import Frozen
from dvfl.federation.protocol.prediction_limits import places
from dvfl.federation.protocol.wire import BadMessage, Fresh
from dvfl.federation.protocol.wire_types import ABSENT, CACHED, FRESH
from dvfl.parties.memory.registers import Stamp


class Gathered(NamedTuple):
    """A host's input for some slots, and what it rests on."""

    b: NDArray[np.float32]  # (1, rows, W_g)
    present: NDArray[np.bool_]  # (1, rows, guests)
    states: NDArray[np.uint8]  # (rows, guests)
    ages: NDArray[np.float32]  # (rows, guests): seconds


def check_fresh(frozen: Frozen, guest: str, slots: NDArray[np.int32], answer: Fresh) -> None:
    """Refuses what is not this guest's answer, by the encoder whose rows the host was trained on."""
    own = frozen.guests[guest]
    if (answer.guest, answer.run, answer.encoder) != (guest, frozen.plan.run, own.encoder):
        raise BadMessage("an answer of another guest, run or encoder")
    if len(answer.slots) and (places(slots, answer.slots) < 0).any():
        raise BadMessage("slots that were not asked for")
    width = frozen.training.register(guest).values.shape[1]
    if len(answer.slots) and answer.values.shape[1] != width:
        raise BadMessage("encodings of another width")


def gathered(
    frozen: Frozen,
    slots: NDArray[np.int32],
    fresh: Mapping[str, Fresh],
    vouched: Vouched,
    now_ms: int,
) -> Gathered:
    """The host's input: guests' answers where there are any, what it holds of the others.

    What is held is fresh where its guest's word for it counts. Its age is the time since it was known to be right.
    """
    b, present = frozen.training.table.inputs(slots)
    for number, planned in enumerate(frozen.plan.guests):
        if planned.name not in frozen.guests:
            present[0, :, number] = False
    held = present[0].copy()
    same = held & (vouched.marks == SAME)
    states = np.where(held, np.where(same & vouched.counts, FRESH, CACHED), ABSENT).astype(np.uint8)
    ages = np.where(same, vouched.ages_s, np.float32(-1.0))
    old = held & ~same
    end = 0
    for number, planned in enumerate(frozen.plan.guests):
        guest, width = planned.name, frozen.plan.sizes.guest_latent[number]
        columns, end = slice(end, end + width), end + width
        if old[:, number].any():
            ages[old[:, number], number] = _ages(frozen, guest, slots[old[:, number]], now_ms)
        answer = fresh.get(guest)
        if answer is not None and len(answer.slots):
            rows = places(slots, answer.slots)
            b[0, rows, columns] = answer.values
            present[0, rows, number] = True
            states[rows, number], ages[rows, number] = FRESH, 0.0
    return Gathered(b, present, states, ages)


def keep(frozen: Frozen, fresh: Mapping[str, Fresh], now_ms: int) -> None:
    """Puts guests' answers into the host's tables, for when these guests are away."""
    for guest, answer in fresh.items():
        stamp = Stamp(max(1, frozen.incarnations[guest]), asked_epoch(frozen.plan), now_ms // 1000)
        frozen.training.register(guest).write(answer.slots, answer.values, stamp)


def _ages(frozen: Frozen, guest: str, slots: NDArray[np.int32], now_ms: int) -> NDArray[np.float64]:
    """Of rows that are held: since they were asked for, or else since the guest's sweep came."""
    steps = frozen.training.register(guest).steps[slots]
    came_ms = 1000.0 * (steps & 0xFFFFFFFF)
    asked = steps >> 32 == asked_epoch(frozen.plan)
    ages: NDArray[np.float64] = (now_ms - np.where(asked, came_ms, frozen.guests[guest].arrived_ms)) / 1000
    return np.maximum(ages, 0.0)
