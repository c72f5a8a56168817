"""How much one request for a prediction may ask, and how long each party may take: kept by guests, hosts and owner."""

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
