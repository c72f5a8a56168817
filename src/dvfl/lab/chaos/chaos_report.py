"""What a chaos run did to a federation, how the federation took it, and whether it kept its promises."""

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dvfl.errors import UserError
from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.transport.line import REQUEST_S
from dvfl.lab.chaos.chaos_parties import Parties
from dvfl.lab.chaos.chaos_schedule import Wish
from dvfl.lab.chaos.chaos_writes import Writes

_COUNTS = ("messages_applied", "messages_superseded", "messages_dropped")


@dataclass(frozen=True)
class Timing:
    """Seconds: until all parties were at work, then of outages, and until the result."""

    start: float
    outages: float
    result: float


def made_report(supervisor: Supervisor, wish: Wish, parties: Parties, writes: Writes, timing: Timing) -> dict[str, Any]:
    """All of it as plain data; `failures` has a line for each promise that was broken."""
    result, tally = json.loads(supervisor.result.read_text()), parties.tally
    waits = _waits(supervisor, result["longest_wait_s"])
    report: dict[str, Any] = {
        "seed": wish.seed,
        "minutes": wish.minutes,
        "kinds": list(wish.kinds),
        "down": wish.down,
        "up": wish.up,
        "dead": {party: tally.dead.get(party) for party in wish.dead},
        "seconds": {name: round(value, 1) for name, value in asdict(timing).items()},
        "kills": tally.kills,
        "stops": tally.stops,
        "longest_stop_s": round(tally.longest_stop_s, 1),
        "links": tally.links,
        "instant_restarts": tally.instant,
        "ended_by_themselves": tally.ended,
        "recovery_s": {kind: _spread(values) for kind, values in tally.recovery_s.items()},
        "restarts": {"counted": tally.restarts, "not_resumed": parties.not_resumed()},
        "longest_wait_s": result["longest_wait_s"],
        "wait_deadline_s": REQUEST_S,
        "waits": waits,
        "messages": _messages(supervisor),
        "writes": writes.to_dict(),
        "score": _score(result),
        "parties": result["parties"],
    }
    return {**report, "failures": _failures(wish, parties, writes, waits)}


def compared(report: dict[str, Any], scores: dict[str, float | None]) -> dict[str, Any]:
    """The report with the scores of other runs beside it."""
    own, beside = report["score"], {}
    for name, other in scores.items():
        beside[f"{name}_score"] = other
        beside[f"against_{name}"] = None if own is None or other is None else round(own - other, 4)
    return {**report, **beside}


def read_score(path: Path) -> float | None:
    """Of a `result.json`: accuracy in percent, or R2 where there are no classes."""
    try:
        return _score(json.loads(path.read_text()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise UserError(f"{path}: no result; the result.json of dvfl train or of an owner is right") from None


def _score(result: dict[str, Any]) -> float | None:
    found = result["accuracy_mean"] if result["accuracy_mean"] is not None else result.get("r2_mean")
    return None if found is None else float(found)


def _failures(wish: Wish, parties: Parties, writes: Writes, waits: dict[str, float]) -> list[str]:
    failures = [f"lost: {example}" for example in writes.examples]
    if writes.lost > len(writes.examples):
        failures.append(f"lost: {writes.lost} acknowledged writes in all")
    if writes.stale_slots:
        failures.append(f"{writes.stale_slots} slots are not from the final sweep that came whole")
    failures += parties.not_resumed()
    failures += [
        f"{party} was never struck dead: its training was over before"
        for party in wish.dead
        if party not in parties.tally.dead
    ]
    failures += [
        f"{party} waited {wait_s:.1f} s, past the deadline of {REQUEST_S:.1f} s"
        for party, wait_s in waits.items()
        if wait_s > REQUEST_S
    ]
    return failures


def _waits(supervisor: Supervisor, longest_s: float) -> dict[str, float]:
    """Each party's longest wait, and that of the result: a killed party may have told of a wait and not saved it."""
    waits = {party: _values(supervisor.folder / party).get("longest_wait_s", 0.0) for party in supervisor.roles}
    return {**waits, "any party": longest_s}


def _messages(supervisor: Supervisor) -> dict[str, int]:
    """By the hosts' counters; what a killed host had counted since its last checkpoint is not in them."""
    counts = [_values(supervisor.folder / host).get("counts", {}) for host in supervisor.federation.hosts]
    return {name.removeprefix("messages_"): sum(count.get(name, 0) for count in counts) for name in _COUNTS}


def _values(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "state" / "checkpoint.json").read_text())["values"]
    return values


def _spread(values: list[float]) -> dict[str, float]:
    return {"count": len(values), "median": statistics.median(values), "max": max(values)}
