"""`dvfl federation up --page`: real parties, predictions over HTTP, and one of them killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

pytest.importorskip("nats", reason="the extra dvfl[federation] is not installed")
pytest.importorskip("dvfl.federation.prediction.predicting", reason="the federation's side of predictions is not here")

SRC = Path(__file__).resolve().parents[2] / "src"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
DVFL = (sys.executable, "-m", "dvfl")


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation's folder."""
    folder = tmp_path_factory.mktemp("federation") / "practice"
    made = [*DVFL, "federation", "init", str(folder), "--guests", "3", "--hosts", "2", "--dataset", "wine"]
    subprocess.run(made, check=True, env=ENVIRONMENT, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def address(practice: Path) -> Iterator[str]:
    """All of it runs, and is served there."""
    command = [*DVFL, "federation", "up", str(practice), "--keep", "--page", "--page-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert process.stdout is not None
        found = re.search(r"the page is at (http://\S+)/", process.stdout.readline())
        assert found is not None
        yield found.group(1)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130


def until_ready(address: str) -> dict[str, Any]:
    """The status once all are up and the head is trained."""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        response = httpx.get(f"{address}/v1/status")
        if response.status_code == 200:
            status = dict(response.json())
            parties = [*status["guests"].values(), *status["hosts"].values()]
            if status["ready"] and all(party["up"] for party in parties):
                return status
        time.sleep(0.25)
    raise AssertionError("the federation was not ready in time")


def test_before_it_is_trained_it_says_how_far_and_then_predicts(address: str, practice: Path) -> None:
    early = httpx.post(f"{address}/v1/predict", json={"ids": ["x"]})
    assert early.status_code == 503 or early.json()["unknown"] == ["x"]  # on a fast machine it is trained by now
    assert until_ready(address)["accuracy"] > 80
    tests = pd.read_parquet(practice / "owner" / "test_labels.parquet")
    body = {"ids": [*map(str, tests["id"]), "nobody"], "deadline_s": 5.0}
    answer = httpx.post(f"{address}/v1/predict", json=body, timeout=10).json()
    assert answer["unknown"] == ["nobody"] and answer["degraded"] == 0
    right = [one["class"] == str(label) for one, label in zip(answer["predictions"], tests["label"], strict=False)]
    assert sum(right) / len(right) > 0.8


def test_a_killed_guest_is_told_within_two_seconds_and_answers_go_on(address: str, practice: Path) -> None:
    until_ready(address)
    one = str(pd.read_parquet(practice / "owner" / "test_labels.parquet")["id"][0])
    pid = json.loads((practice / "guest-2" / "status.json").read_text())["pid"]
    with httpx.stream("GET", f"{address}/v1/events", timeout=10) as response:
        os.kill(pid, signal.SIGSTOP)  # one that is killed would be started again meanwhile
        began = time.monotonic()
        try:
            for line in response.iter_lines():
                if line.startswith('data: {"status"') and not json.loads(line[6:])["status"]["guests"]["guest-2"]["up"]:
                    break
                assert time.monotonic() - began < 10
            seconds = time.monotonic() - began
            (answer,) = httpx.post(f"{address}/v1/predict", json={"ids": [one]}).json()["predictions"]
        finally:
            os.kill(pid, signal.SIGCONT)
    assert answer["answered"] and answer["degraded"] and answer["guests"]["guest-2"]["state"] != "fresh"
    assert seconds < 2.5  # 2 s, and a busy machine's share
    assert 'dvfl_answers_total{kind="degraded"} ' in httpx.get(f"{address}/metrics").text


def test_the_page_and_its_log_know_no_ids(address: str, practice: Path) -> None:
    assert httpx.get(address).text.startswith("<!doctype html>")
    log = (practice / "owner" / "serve.txt").read_text()
    assert '"path": "/v1/predict"' in log
    ids = pd.read_parquet(practice / "owner" / "test_labels.parquet")["id"]
    assert not any(str(one) in log for one in ids)
