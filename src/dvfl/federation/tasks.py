"""Several things at once, until somebody says stop or one of them fails."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def together(stop: asyncio.Event, *works: Coroutine[Any, Any, None]) -> None:
    """Runs all until `stop` is set or one ends; an error in one ends all, and is raised."""
    tasks = [asyncio.create_task(work) for work in (stop.wait(), *works)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
