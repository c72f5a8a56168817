"""Several things at once, until somebody says stop or one of them fails."""

import asyncio
import os
from collections.abc import Awaitable, Collection, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_AGAIN_S = 1.0

Result = TypeVar("Result")


async def together(stop: asyncio.Event, *works: Coroutine[Any, Any, None]) -> None:
    """Runs all until `stop` is set or one ends; an error in one ends all, and is raised."""
    tasks = [asyncio.create_task(work) for work in (stop.wait(), *works)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        await end(tasks)


async def within(seconds: float, answer: Awaitable[Result | None]) -> Result | None:
    """What comes in time, or None, whatever the one who is waited for does."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await answer
    return None


async def end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels tasks until they have ended; what became of them is not asked.

    More than once: before Python 3.12 `asyncio.wait_for`, and so nats-py, forgets a cancellation that comes together
    with what was awaited.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        with suppress(asyncio.CancelledError):  # another one of ours, while these are leaving
            await asyncio.wait(running, timeout=_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


def threads() -> int:
    """The cores that this process is given, or what it was told to take."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else len(os.sched_getaffinity(0))
