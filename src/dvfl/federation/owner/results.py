"""The owner's `result.json`: the fields of `dvfl train`, the longest wait, and every party's counters."""

from typing import Any

from dvfl.federation.owner.owner import OwnerParty

_FLOAT32 = 4


def result(owner: OwnerParty, about: dict[str, str], seconds: dict[str, float]) -> dict[str, Any]:
    """What is known when the head is trained."""
    plan, score = owner.plan, owner.score
    regression = owner.classes is None
    accuracy = None if regression or score is None else round(score, 4)
    latent = sum(plan.sizes.guest_latent) / len(plan.guests)
    sent = plan.guest_epochs // plan.period * plan.host_iterations * plan.batch * latent * _FLOAT32 / 1e6
    waits = [owner.longest_wait_s]
    for status in owner.statuses.values():
        waits += [status.longest_wait_s, *(guest.longest_wait_s for guest in status.guests.values())]
    found: dict[str, Any] = {
        "strategy": "dvfl",
        "dataset": about.get("dataset", ""),
        "preset": about.get("preset", ""),
        "hosts": len(plan.hosts),
        "faults": [],
        "device": "cpu",
        "seeds": [plan.seed],
        "accuracy": [accuracy],
        "accuracy_mean": accuracy,
        "accuracy_2sigma": None if accuracy is None else 0.0,
        "status": "ok",
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "megabytes_sent_per_guest": round(sent, 3),
        "calibration": owner.calibration,
        "longest_wait_s": round(max(waits), 3),
        "parties": _parties(owner),
    }
    if regression:
        found |= {"r2": [score], "r2_mean": score, "r2_2sigma": 0.0}
    return found


def _parties(owner: OwnerParty) -> dict[str, dict[str, int]]:
    """From the newest that any host knows of each."""
    parties: dict[str, dict[str, int]] = {}
    names = ("restarts", "messages_sent", "messages_received", "messages_dropped", "resumed_from_epoch")
    for guest in owner.plan.guests:
        seen = [status.guests[guest.name] for status in owner.statuses.values() if guest.name in status.guests]
        newest = max(seen, key=lambda one: (one.restarts, one.messages_sent), default=None)
        parties[guest.name] = {name: getattr(newest, name) if newest else 0 for name in names}
    for host in owner.plan.hosts:
        status = owner.statuses.get(host)
        parties[host] = {
            "restarts": status.restarts if status else 0,
            "messages_sent": len(owner.collected[host].have) if host in owner.collected else 0,
            "messages_received": status.messages_received if status else 0,
            "messages_dropped": status.messages_dropped if status else 0,
            "resumed_from_epoch": status.resumed_from_step // owner.plan.host_iterations if status else 0,
        }
    own = {"restarts": owner.restarts, **owner.counts, "resumed_from_epoch": owner.resumed_from_epoch}
    return {**parties, owner.name: own}
