"""Real processes, brokers and links that die and come back; and what a chaos run refuses and puts back."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digits import make_digits

from dvfl.cli import main
from dvfl.federation.party.lifecycle import held
from dvfl.federation.party.settings import read_federation
from dvfl.lab.chaos.chaos_folder import changed, put_back
from dvfl.lab.chaos.chaos_resume import CHECKPOINT, Resumption
from dvfl.lab.chaos.chaos_writes import check_writes

SEED = 0  # of whose outages the first seconds have a kill of every kind


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation of the embedded digits, never run; its epochs outlast the first seconds of outages."""
    return make_digits(tmp_path_factory.mktemp("chaos") / "made", guest_epochs=60, host_epochs=120)


@pytest.fixture
def fresh(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "fresh")


@pytest.fixture(scope="module")
def ran(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it after one short run; the report lies beside it."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("chaos") / "ran")
    arguments = f"chaos {folder} --seed {SEED} --minutes 0.15 --down 0.15 --up 0.6 --wait 1.5 --out {folder}.json"
    assert main(arguments.split()) == 0
    return folder


@pytest.fixture(scope="module")
def report(ran: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"{ran}.json").read_text())
    return found


@pytest.fixture
def refusal(fresh: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `dvfl chaos` on a fresh folder with options that must be refused; the one line that said why."""

    def run(*options: str, folder: Path = fresh) -> str:
        before = {path: path.stat().st_mtime_ns for path in fresh.rglob("*") if path.name != ".lock" and path.is_file()}
        assert main(["chaos", str(folder), *options]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        after = {path: path.stat().st_mtime_ns for path in fresh.rglob("*") if path.name != ".lock" and path.is_file()}
        assert after == before, "a refused run changed something"
        return line

    return run


def test_a_run_in_which_every_kind_is_killed_ends_with_a_result(report: dict[str, Any], ran: Path) -> None:
    assert set(report["kills"]) == {"guest", "host", "broker", "owner"}
    assert report["links"] and report["stops"]
    assert report["failures"] == [] and report["restarts"]["counted"] >= 3
    assert report["score"] == json.loads((ran / "owner" / "result.json").read_text())["accuracy_mean"] > 50


def test_a_run_says_how_long_each_kind_took_to_recover(report: dict[str, Any]) -> None:
    for kind in ("guest", "host", "owner"):
        assert 0 < report["recovery_s"][kind]["median"] <= report["recovery_s"][kind]["max"]


def test_a_run_leaves_nobody_behind_and_all_files_as_they_were(ran: Path, made: Path) -> None:
    assert free(ran)
    assert not list(ran.glob("**/*.before-chaos"))
    for path in made.glob("*/*.toml"):
        assert (ran / path.relative_to(made)).read_bytes() == path.read_bytes()


def test_every_acknowledged_write_is_accounted_for(report: dict[str, Any]) -> None:
    writes = report["writes"]
    assert writes["checked"] == writes["applied"] + writes["superseded"] >= 4  # a sweep by each guest at each host
    assert writes["applied"] > 0 and writes["lost"] == 0 == writes["stale_slots"]


def test_a_lost_write_is_found(ran: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(ran, tmp_path / "tampered")
    path = folder / "host-1" / "state" / "guest-2.steps.table"
    steps = np.memmap(path, np.int64, "r+")
    steps[:10] = 1 << 32  # as if all that came after the first epoch had never been applied
    steps.flush()
    writes = asyncio.run(check_writes(folder, read_federation(folder), ["host-1"]))
    assert writes.stale_slots == 10
    assert writes.lost > 0 and writes.examples[0].startswith("host-1: guest-2 ")


def test_a_used_folder_is_refused(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", str(ran)]) == 2
    assert "--again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--kinds guest,brocker", "did you mean 'broker'"),
        ("--down 1.5", "--down 1.5: a rate from 0 to 1"),
        ("--up -0.1", "--up -0.1: a rate from 0 to 1"),
        ("--down 0.1 --up 0", "--dead NAME"),
        ("--minutes 0", "--minutes 0"),
        ("--dead guest-3", "did you mean 'guest-"),
        ("--dead owner", "never end"),
        ("--dead host-1 --dead host-2", "quorum"),
        ("--quiet-result federation.toml", "no result"),
        ("--out nowhere/report.json", "no such folder"),
    ],
)
def test_what_cannot_be_is_refused(refusal: Callable[..., str], options: str, said: str) -> None:
    assert said in refusal(*options.split())


def test_a_folder_that_is_no_federation_is_refused(refusal: Callable[..., str], tmp_path: Path) -> None:
    assert "no federation.toml" in refusal(folder=tmp_path)


def test_a_folder_in_which_a_party_runs_is_refused(refusal: Callable[..., str], fresh: Path) -> None:
    with held(fresh / "guest-2", "guest-2"):
        assert f"guest-2 runs already on {fresh / 'guest-2'}" in refusal()


@pytest.fixture
def started(fresh: Path) -> Iterator[subprocess.Popen[str]]:
    """A chaos run of its own process, all parties of which have been started."""
    command = [sys.executable, "-m", "dvfl", "chaos", str(fresh)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 120  # a machine may be busy with much else
            while len(list(fresh.glob("*/status.json"))) < 5:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


def free(fresh: Path) -> bool:
    try:
        for party in ("guest-1", "guest-2", "host-1", "host-2", "owner"):
            with held(fresh / party, party):
                pass
    except Exception:
        return False
    return True


def test_a_run_that_is_stopped_takes_all_with_it_and_puts_all_back(
    started: subprocess.Popen[str], fresh: Path, made: Path
) -> None:
    assert (fresh / "guest-1" / "party.toml").read_bytes() != (made / "guest-1" / "party.toml").read_bytes()
    started.send_signal(signal.SIGTERM)
    assert started.wait(30) == 128 + signal.SIGTERM
    assert free(fresh)
    for path in made.glob("*/*.toml"):
        assert (fresh / path.relative_to(made)).read_bytes() == path.read_bytes()


def test_a_run_that_is_killed_takes_all_with_it_and_the_next_puts_all_back(
    started: subprocess.Popen[str], fresh: Path, made: Path
) -> None:
    os.kill(started.pid, signal.SIGKILL)
    started.wait(10)
    until = time.monotonic() + 10
    while not free(fresh):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert main(["chaos", str(fresh)]) == 2  # it has been used; but first what was other is put back
    for path in made.glob("*/*.toml"):
        assert (fresh / path.relative_to(made)).read_bytes() == path.read_bytes()


def test_files_are_other_only_as_long_as_they_should_be(tmp_path: Path) -> None:
    path = tmp_path / "party.toml"
    path.write_text("as it was")
    with pytest.raises(ValueError, match="on the way"), changed({path: "other"}):
        assert path.read_text() == "other"
        raise ValueError("on the way")
    assert path.read_text() == "as it was" and list(tmp_path.iterdir()) == [path]


def test_a_change_that_nobody_undid_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "guest-1" / "party.toml"
    path.parent.mkdir()
    path.write_text("as it was")
    undone = changed({path: "other"})
    undone.__enter__()  # and never left, as by a process that is killed
    put_back(tmp_path)
    assert path.read_text() == "as it was" and list(path.parent.iterdir()) == [path]


def test_a_restart_may_lose_what_came_after_the_last_checkpoint() -> None:
    resumption = Resumption("host-1")
    for epoch in range(20):
        resumption.said(epoch)
    resumption.starts(20 - CHECKPOINT)
    resumption.said(20 - CHECKPOINT)
    assert resumption.wrong == []


def test_a_restart_from_further_back_is_found() -> None:
    resumption = Resumption("host-1")
    for epoch in range(20):
        resumption.said(epoch)
    resumption.starts(19 - CHECKPOINT)
    assert resumption.wrong == ["host-1 had saved epoch 4, though it had long been in 5"]


def test_a_restart_that_does_not_take_its_checkpoint_is_found() -> None:
    resumption = Resumption("guest-1")
    resumption.starts(3)
    resumption.said(0)
    assert resumption.wrong == ["guest-1 went on from epoch 0, though 3 had been saved"]


def test_a_party_that_looks_after_its_slots_first_is_judged_by_its_first_epoch() -> None:
    resumption = Resumption("guest-1")
    resumption.starts(3)
    resumption.said(None)
    resumption.said(3)
    assert resumption.wrong == []
