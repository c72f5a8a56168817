"""Looks at the federation again and again, and keeps what people ask about afterwards: who was down, and curves."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

LOOK_S = 0.25
TELL_S = 1.0
_SETTLE_S = 2.0  # in which nobody counts as down: connections are still being made
_FAULTS, _POINTS = 500, 240

Status = dict[str, Any]


@dataclass
class Fault:
    """A party that was down from then on, and until when; times in seconds since 1970."""

    party: str
    role: str
    since_s: float
    until_s: float | None = None


class Curve:
    """A value over time in a bounded number of points: when they are too many, every second one goes."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []
        self._apart = 0.0  # seconds that two points are apart at least

    def note(self, at: float, value: float) -> None:
        if self.points and (value == self.points[-1][1] or at - self.points[-1][0] < self._apart):
            return
        self.points.append((at, value))
        if len(self.points) > _POINTS:
            self._apart = 2 * (at - self.points[0][0]) / _POINTS
            self.points = self.points[::2]


class Watcher:
    """The newest status, the faults since it began, and a curve for every loss and the accuracy."""

    def __init__(self, status: Callable[[], Status], now: Callable[[], float] = time.time) -> None:
        self._status, self._now = status, now
        self.began_s = now()
        self.latest: Status | None = None
        self.seen_s = self.began_s  # when `latest` was
        self.trouble: str | None = None  # why there is no newer one
        self.faults: deque[Fault] = deque(maxlen=_FAULTS)
        self.curves: dict[str, Curve] = {}
        self._present: tuple[str, ...] = ()
        self._met: set[str] = set()  # whoever was there once; nobody is missed before, but all are after training
        self._looks = 0
        self._changed = asyncio.Condition()

    def look(self) -> None:
        """Asks once; a status that cannot be had is a trouble to tell, not the end."""
        try:
            self._take(self._status())
            self.trouble = None
        except Exception as error:
            self.trouble = f"no status ({type(error).__name__})"

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Looks again and again while this is open."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def news(self) -> AsyncIterator[dict[str, Any]]:
        """What there is now, then at once when somebody has gone or come, and once a second anyhow."""
        told, known = 0, None
        while True:
            present = (self.trouble, self._present)
            if present != known or self._looks - told >= TELL_S / LOOK_S:
                told, known = self._looks, present
                yield self.newest()
            async with self._changed:
                await self._changed.wait()

    def history(self) -> dict[str, Any]:
        """What a page that opens now has missed."""
        curves = {name: curve.points for name, curve in self.curves.items()}
        return {"began_s": self.began_s, "curves": curves}

    def newest(self) -> dict[str, Any]:
        """What there is now."""
        faults = [
            {"party": one.party, "role": one.role, "since_s": one.since_s, "until_s": one.until_s}
            for one in self.faults
        ]
        now = {"status": self.latest, "seen_s": self.seen_s, "now_s": self._now(), "trouble": self.trouble}
        return {**now, "faults": faults}

    async def _watch(self) -> None:
        while True:
            self.look()
            self._looks += 1
            async with self._changed:
                self._changed.notify_all()
            await asyncio.sleep(LOOK_S)

    def _take(self, status: Status) -> None:
        everybody, now = list(parties(status)), self._now()
        present = tuple(name for name, _, party in everybody if party["up"])
        if self.latest is None and len(present) < len(everybody) and now - self.began_s < _SETTLE_S:
            return
        self.latest, self.seen_s, self._present = status, now, present
        self._met.update(present if not status["ready"] else [name for name, _, _ in everybody])
        for name, role, party in everybody:
            self._note_fault(name, role, bool(party["up"]))
            self._note_curve(name, party.get("loss"))
        self._note_curve("accuracy", status.get("accuracy"))

    def _note_fault(self, name: str, role: str, up: bool) -> None:
        last = next((one for one in reversed(self.faults) if one.party == name and one.until_s is None), None)
        if not up and last is None and name in self._met:
            self.faults.append(Fault(name, role, self.seen_s))
        elif up and last is not None:
            last.until_s = self.seen_s

    def _note_curve(self, name: str, value: object) -> None:
        if isinstance(value, float | int):
            self.curves.setdefault(name, Curve()).note(self.seen_s, float(value))


def parties(status: Status) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, role and status of everybody."""
    for role, members in (("guest", status["guests"]), ("host", status["hosts"])):
        for name, party in members.items():
            yield name, role, party
    yield "owner", "owner", status["owner"]
