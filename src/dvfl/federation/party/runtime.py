"""What a party works in, whatever that is: clocks, somebody to do the computing, and a count of its waiting."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")

_TICK_S = 0.1
_FEW = 16
_STOPPED_S = 0.5  # a running process's ticks are never this far apart


class Surroundings(Protocol):
    """The clock on the wall, one that counts only while the party runs, and a place to compute while it listens."""

    def now_ms(self) -> int: ...
    def awake_s(self) -> float: ...
    async def work(self, task: Callable[[], Result]) -> Result: ...


class Here:
    """This machine: its clocks, and a thread."""

    def __init__(self) -> None:
        self._awake = AwakeClock(time.monotonic)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def awake_s(self) -> float:
        return self._awake.seconds()

    async def work(self, task: Callable[[], Result]) -> Result:
        return await asyncio.to_thread(task)


async def worked(here: Surroundings, rows: int, task: Callable[[], Result]) -> Result:
    """Does what a request wants: at once for a few rows, where going to another thread and back would take longer."""
    return task() if rows <= _FEW else await here.work(task)


class AwakeClock:
    """Seconds in which this process ran, to a tick. Stopped (SIGSTOP, a sleeping machine), it stands still.

    No clock of the system does that, so a thread looks at one ten times a second and leaves out what it slept through.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._seen, self._slept = clock, clock(), 0.0
        self._lock = threading.Lock()
        threading.Thread(target=self._tick, name="awake clock", daemon=True).start()

    def seconds(self) -> float:
        with self._lock:
            now = self._clock()
            if now - self._seen > _STOPPED_S:
                self._slept += now - self._seen
            self._seen = now
            return now - self._slept

    def _tick(self) -> None:
        while True:
            time.sleep(_TICK_S)
            self.seconds()


class Waits(Protocol):
    """A party that remembers its longest wait."""

    longest_wait_s: float


async def awaited(party: Waits, here: Surroundings, answer: Awaitable[Result]) -> Result:
    """Awaits what somebody else has to give, and notes how long that took."""
    before = here.awake_s()
    result = await answer
    party.longest_wait_s = max(party.longest_wait_s, here.awake_s() - before)
    return result
