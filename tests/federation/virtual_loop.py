"""An event loop whose clock jumps, for whole histories in no time."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop on which nothing comes from outside, so its clock jumps to the next thing that is due."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._due: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = 0  # what is due at the same time runs in the order in which it was asked for

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._number += 1
        heapq.heappush(self._due, (when, self._number, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _run_once(self) -> None:
        if not self._ready:
            if not self._due:
                raise RuntimeError("everybody waits and nothing is due: a deadlock")
            self.now, _, timer = heapq.heappop(self._due)
            self._ready.append(timer)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()


def simulate(story: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Runs a story to its end on a clock of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(story())
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
