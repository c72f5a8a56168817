"""Parties on disks that are full or read-only: one line says so, what was saved is kept, and once mended it goes on."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import nats
import pytest
from digits import make_digits
from nats.errors import Error as NatsError
from small_disk import FULL, READ_ONLY, SmallDisk, small_disk

from dvfl.cli import main
from dvfl.federation.keys.credentials import client_options
from dvfl.federation.party.settings import read_federation, read_guest
from dvfl.federation.party.storage import Checkpoint, DiskStorage, saved_values

GUESTS, BROKEN = ("guest-1", "guest-2"), ("host-1", "guest-1", "guest-2")
EPOCHS = 60


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 2) as mounted:
        yield mounted


# A start on such a disk.


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_digits(tmp_path_factory.mktemp("full") / "practice", hosts=1, guest_epochs=EPOCHS, host_epochs=10)


@pytest.mark.parametrize("party", ["host-1", "guest-1", "owner"])
@pytest.mark.parametrize("said", [FULL, READ_ONLY])
def test_a_party_does_not_start_on_such_a_disk_and_says_why(
    practice: Path, disk: SmallDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str], party: str, said: str
) -> None:
    folder = shutil.copytree(practice / party, tmp_path / party, ignore=shutil.ignore_patterns("state"))
    (folder / "state").symlink_to(disk.root)
    if said == FULL:
        disk.fill()
    else:
        assert disk.remount("ro")
    assert main([party.partition("-")[0], str(folder)]) == 1
    assert re.fullmatch(f"dvfl: .*/{party}/state {said}\n", capsys.readouterr().err)


# A whole run.


@dataclass
class Run:
    """A federation whose host and guests lost their disks for a while in the middle of training."""

    ended: dict[str, tuple[int, str]] = field(default_factory=dict)  # status and last words in the middle of the run
    kept: dict[str, Checkpoint] = field(default_factory=dict)  # what was on it by then
    result: dict[str, Any] = field(default_factory=dict)


class Processes:
    """The parties of one folder, with what they write to stderr."""

    def __init__(self, folder: Path, disks: dict[str, SmallDisk]) -> None:
        self._folder, self._disks = folder, disks
        self._running: dict[str, tuple[subprocess.Popen[str], TextIO]] = {}
        self._stopped: set[str] = set()

    def start(self, *parties: str) -> None:
        for party in parties:
            said = (self._folder.parent / f"{party}.stderr").open("w+")
            command = [sys.executable, "-m", "dvfl", party.partition("-")[0], str(self._folder / party)]
            options: dict[str, Any] = {"stderr": said, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
            disk = self._disks.get(party)
            process = disk.start(command, **options) if disk else subprocess.Popen(command, text=True, **options)
            self._running[party] = process, said

    def ended(self, *parties: str) -> dict[str, tuple[int, str]]:
        """Waits for their ends: status, and what they said."""
        found = {}
        for party in parties:
            process, said = self._running[party]
            found[party] = process.wait(120), Path(said.name).read_text()
            said.close()
            del self._running[party]
        return found

    def signal(self, sign: signal.Signals, *parties: str) -> None:
        for party in parties:
            self._running[party][0].send_signal(sign)

    def stopped_at(self, epochs: int, states: dict[str, Path]) -> bool:
        """Stops each of these as soon as it has trained for so long: one that waited for a slow other would be done."""
        for party in states.keys() - self._stopped:
            if epoch(states[party]) >= epochs:
                self.signal(signal.SIGSTOP, party)
                self._stopped.add(party)
        return self._stopped >= states.keys()

    def step(self, party: str) -> None:
        """Lets one that is stopped go on for a moment."""
        self.signal(signal.SIGCONT, party)
        time.sleep(0.01)
        self.signal(signal.SIGSTOP, party)
        time.sleep(0.01)  # the signal is not there at once

    def stop(self) -> None:
        for process, said in self._running.values():
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            said.close()
        for process, _ in self._running.values():
            try:
                process.wait(30)
            finally:
                process.kill()

    def dead(self, party: str) -> bool:
        return self._running[party][0].poll() is not None

    def until(self, true: Callable[[], object]) -> None:
        deadline = time.monotonic() + 120
        while not true():
            dead = {party: Path(said.name).read_text() for party, (one, said) in self._running.items() if one.poll()}
            assert not dead and time.monotonic() < deadline, dead
            time.sleep(0.02)


def epoch(state: Path) -> int:
    return int((saved_values(state) or {"epoch": 0})["epoch"])


def push_until(folder: Path, ended: Callable[[], bool]) -> None:
    """Sends to the host as guest-1 would, but something that is sure not to fit."""

    async def quiet(error: Exception) -> None:
        """Its broker ends with the host."""

    async def story() -> None:
        federation = read_federation(folder)
        party = read_guest(folder / "guest-1", federation)
        options = client_options(folder / "guest-1", "host-1", federation.name)
        client = await nats.connect(f"tls://{party.hosts['host-1']}", allow_reconnect=False, error_cb=quiet, **options)
        while not ended():
            with contextlib.suppress(NatsError):
                await client.request("push", bytes(100_000), timeout=0.2)
        with contextlib.suppress(NatsError, OSError):
            await client.close()

    asyncio.run(asyncio.wait_for(story(), 120))


@pytest.fixture(scope="module")
def run(practice: Path) -> Iterator[Run]:
    folder, base = practice, practice.parent
    with (
        small_disk(folder / "host-1", 64) as host,  # two guests' streams grow to 24 MB, and checkpoints come on top
        small_disk(folder / "guest-1" / "state", 4) as filled,
        small_disk(folder / "guest-2" / "state", 4) as locked,
    ):
        shutil.copytree(folder / "host-1", host.root, dirs_exist_ok=True)
        states = {"host-1": host.root / "state", "guest-1": filled.root, "guest-2": locked.root}
        parties = Processes(folder, {"host-1": host, "guest-1": filled, "guest-2": locked})
        run = Run()
        try:
            parties.start("owner", *BROKEN)
            parties.until(lambda: parties.stopped_at(2, {name: states[name] for name in GUESTS}))
            host.fill()
            push_until(folder, lambda: parties.dead("host-1"))
            run.ended = parties.ended("host-1")
            # A guest that was stopped while it wrote goes on a little: the file it is about to replace would make room
            # for the next checkpoint and so on for ever, and a disk with a file open for writing stays writable.
            while any(filled.root.glob(".*")):
                parties.step("guest-1")
            filled.fill()
            while not locked.remount("ro"):
                parties.step("guest-2")
            parties.signal(signal.SIGCONT, *GUESTS)
            run.ended |= parties.ended(*GUESTS)
            for party, state in states.items():
                found = DiskStorage(shutil.copytree(state, base / f"{party}.copy")).load()
                assert found is not None
                run.kept[party] = found
            host.empty()
            filled.empty()
            assert locked.remount("rw")
            parties.start(*BROKEN)
            parties.until((folder / "owner" / "result.json").exists)
        finally:
            parties.stop()
        run.result = json.loads((folder / "owner" / "result.json").read_text())
        yield run


@pytest.mark.parametrize(
    ("party", "said"),
    [
        # The broker's stream and the host's checkpoint are on the same disk: who meets it first is luck.
        ("host-1", rf"the broker could not keep a message \(write .*: no space left on device\); .*|.* {FULL}"),
        ("guest-1", rf".*/guest-1/state/checkpoint(-[ab]\.safetensors|\.json) {FULL}"),
        ("guest-2", rf".*/guest-2/state/checkpoint(-[ab]\.safetensors|\.json) {READ_ONLY}"),
    ],
)
def test_a_party_whose_disk_fails_in_the_middle_of_a_run_ends_with_one_line(run: Run, party: str, said: str) -> None:
    status, words = run.ended[party]
    assert status == 1
    assert re.fullmatch(f"dvfl: ({said})\n", words), words


@pytest.mark.parametrize("party", BROKEN)
def test_the_last_checkpoint_is_whole(run: Run, party: str) -> None:
    kept = run.kept[party]
    assert kept.values["plan"] and kept.tensors
    assert all(bool(tensor.isfinite().all()) for tensor in kept.tensors.values())


def test_once_mended_all_go_on_from_there_to_the_result(run: Run) -> None:
    assert run.result["accuracy_mean"] > 50
    for guest in GUESTS:
        assert run.result["parties"][guest]["resumed_from_epoch"] == run.kept[guest].values["epoch"]
        assert 2 <= run.kept[guest].values["epoch"] < EPOCHS
        assert run.result["parties"][guest]["restarts"] == 1
