"""Hosts as the owner's side sees them just now: each is shown the owner's plan again and again, and says how it is."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dvfl.federation.protocol.wire import BadMessage, Collect, GuestSeen, Refused, Status, Tell, decode, encode
from dvfl.federation.transport.line import OwnerLine

UP_S = 1.5  # since it was last heard
VOUCHED_S = 1.5  # for which the word of a host counts, with that of its guests
_LOOK_S = 0.3


@dataclass
class Seen:
    """One host."""

    asked: bool = False
    heard_s: float | None = None  # by the clock of the event loop
    gone: bool = False  # nobody answered, and it was clear at once
    status: Status | None = None
    asked_s: float = 0.0  # when that was asked for


class HostWatch:
    """Asks every host a few times a second; signs nothing, since a plan that was signed may be shown again."""

    def __init__(self, lines: Mapping[str, OwnerLine], plan: Callable[[], str]) -> None:
        self._lines, self._plan = lines, plan
        self._seen = {host: Seen() for host in lines}

    async def run(self) -> None:
        """Until it is cancelled."""
        await asyncio.gather(*(self._watch(host) for host in self._lines))

    def heard(self, host: str) -> None:
        """It said something, whatever that was."""
        self._seen[host].heard_s, self._seen[host].gone = _now(), False

    def up(self, host: str) -> bool:
        seen = self._seen[host]
        return not seen.gone and seen.heard_s is not None and _now() - seen.heard_s < UP_S

    def away(self, host: str) -> bool:
        """Whether it makes no sense to wait for it."""
        return self._seen[host].asked and not self.up(host)

    def vouched_s(self, host: str, frozen: str) -> float | None:
        """Since when what a host gave for training is known to be what it would answer; None: that is not known."""
        seen = self._seen[host]
        if seen.status is None or seen.gone or seen.status.frozen != frozen or seen.status.vouched_s < 0:
            return None
        age_s = _now() - seen.asked_s + seen.status.vouched_s
        return age_s if age_s <= VOUCHED_S else None

    def hosts(self) -> dict[str, dict[str, Any]]:
        """For the status of the federation."""
        found = {}
        for host, seen in self._seen.items():
            known = seen.status
            found[host] = {
                "up": self.up(host),
                "state": known.state if known else "never heard",
                "steps": known.steps if known else 0,
                "budget": known.budget if known else 0,
                "loss": known.loss if known else None,
                "restarts": known.restarts if known else 0,
                "bytes_sent": known.bytes_sent if known else 0,
                "bytes_received": known.bytes_received if known else 0,
                "age_s": None if seen.heard_s is None else round(_now() - seen.heard_s, 3),
            }
        return found

    def guest(self, name: str, epochs: int | None) -> dict[str, Any]:
        """The same of a guest that trains for so many epochs, from what hosts say of it."""
        statuses = {host: seen.status for host, seen in self._seen.items() if seen.status is not None}
        told = {host: status.guests[name] for host, status in statuses.items() if name in status.guests}
        newest = max(told.values(), key=lambda one: (one.restarts, one.epoch, one.messages_sent), default=None)
        return {
            "up": any(one.up for host, one in told.items() if self.up(host)),
            "state": newest.state if newest else "never heard",
            # A sweep comes after the last epoch.
            "epoch": min(newest.epoch, epochs or newest.epoch) if newest else 0,
            "epochs": epochs,
            "loss": newest.loss if newest else None,
            "restarts": newest.restarts if newest else 0,
            "bytes_sent": newest.bytes_sent if newest else 0,
            "bytes_received": newest.bytes_received if newest else 0,
            "hosts": {host: {"age_s": _age(one), "held": one.held} for host, one in told.items()},
        }

    async def _watch(self, host: str) -> None:
        while True:
            await self._look(host)
            await asyncio.sleep(_LOOK_S)

    async def _look(self, host: str) -> None:
        seen, began, plan, line = self._seen[host], _now(), self._plan(), self._lines[host]
        # Before there is a plan, it is asked for what it must refuse.
        reply = await (line.tell(encode(Tell(plan))) if plan else line.collect(encode(Collect("", "", 0))))
        seen.asked = True
        if reply is None:
            seen.gone = seen.gone or _now() - began < UP_S
            return
        self.heard(host)
        try:
            answer = decode(reply, Status, Refused)
        except BadMessage:
            return
        if isinstance(answer, Status):
            seen.status, seen.asked_s = answer, began


def _age(seen: GuestSeen) -> float | None:
    return None if seen.age_s < 0 else round(seen.age_s, 3)


def _now() -> float:
    return asyncio.get_running_loop().time()
