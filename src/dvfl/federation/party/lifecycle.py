"""What every party's process does: holds its folder alone, leaves on a signal, and says how it is doing."""

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dvfl.errors import RunFailed
from dvfl.files import write_json, writing

STATUS = "status.json"
_STATUS_S = 1.0


@contextmanager
def held(folder: Path, party: str) -> Iterator[None]:
    """The folder to this process alone, however it ends."""
    with writing(folder):
        file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(file, 32, 0).decode(errors="replace").strip()
            raise RunFailed(f"{party} runs already on {folder} (process {pid}); only one may") from None
        with writing(folder):
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)


def run(service: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Runs a service until it ends or SIGTERM or SIGINT asks it to; it then saves and leaves."""

    async def until_asked() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, stop.set)
        await service(stop)

    asyncio.run(until_asked())


async def report(folder: Path, status: Callable[[], dict[str, Any]]) -> None:
    """Writes how the party is doing into its folder, again and again, and a last time when it leaves."""
    running = True
    while True:
        with suppress(OSError):  # a full disk is the checkpoint's to report
            write_json(folder / STATUS, {**status(), "pid": os.getpid(), "running": running})
        if not running:
            return
        try:
            await asyncio.sleep(_STATUS_S)
        except asyncio.CancelledError:
            running = False


def say(text: str) -> None:
    """One line in the party's log, with the time."""
    with suppress(OSError):  # its disk may be full, which is no reason to stop training
        print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {text}", file=sys.stderr, flush=True)
