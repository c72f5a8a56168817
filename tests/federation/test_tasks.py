"""Several things at once: one that fails ends all, and all are ended."""

import asyncio
from contextlib import suppress

import pytest

from dvfl.federation.party.tasks import end, together


async def deaf() -> None:
    """Does not hear its first cancellation."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    await asyncio.sleep(60)


async def failing() -> None:
    await asyncio.sleep(0)
    raise ValueError("on the way")


def test_a_task_that_did_not_hear_that_it_should_end_is_told_again() -> None:
    async def story() -> bool:
        task = asyncio.create_task(deaf())
        await asyncio.sleep(0)
        await end([task])
        return task.cancelled()

    assert asyncio.run(asyncio.wait_for(story(), 10))


def test_an_error_in_one_ends_all_and_is_raised() -> None:
    async def story() -> None:
        await together(asyncio.Event(), asyncio.sleep(60), together(asyncio.Event(), deaf(), failing()))

    with pytest.raises(ValueError, match="on the way"):
        asyncio.run(asyncio.wait_for(story(), 10))


def test_all_are_ended_when_it_is_said() -> None:
    async def story() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.01, stop.set)
        await together(stop, asyncio.sleep(60), together(stop, asyncio.sleep(60)))

    asyncio.run(asyncio.wait_for(story(), 10))
