"""A party's waiting is counted while it runs, and not while it is stopped."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from dvfl.federation.party.runtime import AwakeClock, Here, awaited

STOP_S = 1.2
WAITING = """
import asyncio
from dvfl.federation.party.runtime import Here, awaited

class Party:
    longest_wait_s = 0.0

async def wait():
    print("waiting", flush=True)
    await asyncio.sleep(1.0)

async def main():
    here, party = Here(), Party()
    await awaited(party, here, wait())
    print(party.longest_wait_s)

asyncio.run(main())
"""


class Party:
    longest_wait_s = 0.0


def test_the_longest_wait_is_kept() -> None:
    async def story() -> float:
        party, here = Party(), Here()
        for seconds in (0.0, 0.2, 0.1):
            assert await awaited(party, here, asyncio.sleep(seconds, "answer")) == "answer"
        return party.longest_wait_s

    assert asyncio.run(story()) == pytest.approx(0.2, abs=0.15)


def test_a_stopped_process_does_not_wait() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        time.sleep(0.7)
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(STOP_S)  # past the second that it waits in all
        os.kill(process.pid, signal.SIGCONT)
        assert float(process.stdout.readline()) < 1.2
        assert process.wait(10) == 0


def test_what_the_clock_slept_through_is_left_out_whoever_looks_first() -> None:
    shown = [100.0]
    clock = AwakeClock(lambda: shown[0])
    began = clock.seconds()
    shown[0] += 0.4
    assert clock.seconds() - began == pytest.approx(0.4)
    shown[0] += 60.0
    assert clock.seconds() - began == pytest.approx(0.4)
