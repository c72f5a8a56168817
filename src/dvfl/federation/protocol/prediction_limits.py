"""What guests, hosts and owner keep to when a prediction is asked for: how much, how long, and which slot is where."""

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.protocol.plan import Plan
from dvfl.federation.protocol.wire import Ask, BadMessage, Predict

PART = 512  # slots of a request, at most
GUESTS_SHARE, HOSTS_SHARE = 0.6, 0.85  # of the time that is left when a host, or the owner, is asked
_BYTES = 512_000  # of an answer's arrays


def rows_at_once(plan: Plan) -> int:
    """Slots of a request, so that its answers fit into messages."""
    numbers = max(plan.host_width + 2 * len(plan.guests), *plan.sizes.guest_latent)
    return max(1, min(PART, _BYTES // (4 * numbers + 4)))


def check_slots(plan: Plan, asked: Predict | Ask) -> None:
    """Refuses more slots than an answer holds, and those that there are not."""
    if len(asked.slots) > rows_at_once(plan) or (len(asked.slots) and asked.slots.max() >= plan.all_slots):
        raise BadMessage("more slots than an answer holds, or beyond the plan's")


def places(slots: NDArray[np.int32], some: NDArray[np.int32]) -> NDArray[np.intp]:
    """Where some numbers stand among slots, of which there is one at least; -1 for one that does not."""
    if np.array_equal(slots, some):
        return np.arange(len(slots))
    order = slots.argsort()
    found: NDArray[np.intp] = order[slots.searchsorted(some, sorter=order).clip(max=len(slots) - 1)]
    found[slots[found] != some] = -1
    return found
