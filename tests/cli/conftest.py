"""A federation small enough for tests: few epochs on the embedded digits, and tables of a test's own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dvfl.cli import main

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own, and sees no data of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    """Runs `dvfl train` with arguments that must be refused; the one line that said why."""

    def run(*arguments: str | Path) -> str:
        before = sorted(tmp_path.rglob("*"))
        assert main(["train", "--quiet", *map(str, arguments)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        assert line.startswith("dvfl: ")
        assert sorted(tmp_path.rglob("*")) == before, "a refused run left something behind"
        return line

    return run


@pytest.fixture
def short() -> tuple[str, ...]:
    """Options for a training of a moment."""
    return ("--quiet", "--guest-epochs", "2", "--host-epochs", "3", "--owner-epochs", "2")


@pytest.fixture
def outages(tmp_path: Path) -> Path:
    """A record in which a guest of digits is down in the rounds 7 .. 11."""
    path = tmp_path / "outages.csv"
    path.write_text("party,down,up\nrows-2-3,7,12\n")
    return path


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """Two guests' tables and labels that depend on both."""
    rng = np.random.default_rng(0)
    ids, a, b = np.arange(120), rng.normal(size=(120, 3)), rng.normal(size=(120, 2))
    paths = {name: tmp_path / f"{name}.csv" for name in ("bank", "shop", "labels")}
    pd.DataFrame({"id": ids, "x": a[:, 0], "y": a[:, 1], "z": a[:, 2]}).to_csv(paths["bank"], index=False)
    pd.DataFrame({"id": ids[::-1], "u": b[::-1, 0], "v": b[::-1, 1]}).to_csv(paths["shop"], index=False)
    pd.DataFrame({"id": ids, "paid": np.where(a[:, 0] + b[:, 0] > 0, "yes", "no")}).to_csv(paths["labels"], index=False)
    return paths


@pytest.fixture
def process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts real `dvfl` processes, with one thread each, since tests share their cores; none outlives the test."""
    started = []

    def start(*arguments: str | Path, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "dvfl", *map(str, arguments)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment))
        return started[-1]

    yield start
    for run in started:
        if run.poll() is None:
            run.kill()
        run.communicate()
