"""Status, events and metrics: what they tell, and what is kept of the past."""

import json
import threading
import time
from typing import Any

import httpx
import pytest
from clinic import Clinic

from dvfl.serving.watching import Watcher


def events(server: str, count: int) -> list[tuple[str, Any]]:
    """The first events that a page gets."""
    found: list[tuple[str, Any]] = []
    with httpx.stream("GET", f"{server}/v1/events", timeout=10) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in response.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                found.append((name, json.loads(line.removeprefix("data: "))))
            if len(found) == count:
                return found
    raise AssertionError("the stream ended")


def status(client: httpx.Client) -> dict[str, Any]:
    """The status, once there is one."""
    for _ in range(100):
        response = client.get("/v1/status")
        if response.status_code == 200:
            return dict(response.json())
        time.sleep(0.05)
    raise AssertionError("no status")


def test_the_status_is_the_predictors_own(client: httpx.Client, clinic: Clinic) -> None:
    found, expected = status(client), clinic.status()
    assert {**found, "time_s": 0} == {**expected, "time_s": 0}


def test_a_party_that_goes_down_is_in_the_stream_within_a_second(server: str, clinic: Clinic) -> None:
    threading.Timer(0.7, lambda: clinic.down.add("imaging")).start()
    began = time.monotonic()
    found = events(server, 5)
    assert [name for name, _ in found] == ["history", *["status"] * 4]
    assert time.monotonic() - began < 4
    ups = [value["status"]["guests"]["imaging"]["up"] for _, value in found[1:] if value["status"]]
    assert ups[0] and not ups[-1]
    assert found[-1][1]["faults"][0]["party"] == "imaging"


def test_metrics_tell_requests_answers_and_parties(client: httpx.Client, clinic: Clinic) -> None:
    clinic.down = {"laboratory"}
    client.post("/v1/predict", json={"ids": ["1", "2", "nobody"]})
    status(client)
    time.sleep(0.7)
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    lines = response.text.splitlines()
    assert 'dvfl_answers_total{kind="degraded"} 2.0' in lines
    assert 'dvfl_answers_total{kind="unknown"} 1.0' in lines
    assert 'dvfl_answers_total{kind="whole"} 0.0' in lines
    assert 'dvfl_requests_total{path="/v1/predict",status="200"} 1.0' in lines
    assert 'dvfl_party_up{party="laboratory",role="guest"} 0.0' in lines
    assert 'dvfl_party_up{party="owner",role="owner"} 1.0' in lines
    assert 'dvfl_register_age_seconds{guest="laboratory",host="north"} 240.0' in lines
    assert "dvfl_ready 1.0" in lines and "dvfl_accuracy 97.4" in lines
    assert any(line.startswith('dvfl_request_seconds_bucket{le="0.005",path="/v1/predict"}') for line in lines)
    assert any(line.startswith('dvfl_party_loss{party="north",role="host"}') for line in lines)


def test_unknown_paths_and_methods_are_told_what_is_there(client: httpx.Client) -> None:
    for response in (client.get("/v2/predict"), client.get("/page/../../secret"), client.delete("/v1/status")):
        assert response.status_code in (404, 405)
        assert "/openapi.json" in response.json()["error"]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_faults_have_a_beginning_and_an_end(clinic: Clinic, clock: Clock) -> None:
    watcher = Watcher(clinic.status, clock)
    for at, down in ((1001.0, set()), (1002.0, {"north"}), (1003.0, {"north", "owner"}), (1004.0, {"owner"})):
        clock.now, clinic.down = at, down
        watcher.look()
    assert [(one.party, one.role, one.since_s, one.until_s) for one in watcher.faults] == [
        ("north", "host", 1002.0, 1004.0),
        ("owner", "owner", 1003.0, None),
    ]


def test_nobody_is_missed_who_has_not_come_yet(clinic: Clinic, clock: Clock) -> None:
    clinic.ready, clinic.down = False, {"imaging", "north"}
    watcher = Watcher(clinic.status, clock)
    for at, down in ((1005.0, {"imaging", "north"}), (1006.0, {"imaging"}), (1007.0, {"imaging", "north"})):
        clock.now, clinic.down = at, down
        watcher.look()
    assert [(one.party, one.since_s) for one in watcher.faults] == [("north", 1007.0)]
    clock.now, clinic.ready = 1008.0, True
    watcher.look()
    assert [(one.party, one.since_s) for one in watcher.faults] == [("north", 1007.0), ("imaging", 1008.0)]


def test_the_first_moments_in_which_connections_are_made_do_not_count(clinic: Clinic, clock: Clock) -> None:
    clinic.down = {"imaging"}
    watcher = Watcher(clinic.status, clock)
    clock.now += 1.0
    watcher.look()
    assert watcher.latest is None
    clinic.down = set()
    watcher.look()
    assert watcher.latest is not None and not watcher.faults


def test_curves_stay_small_and_keep_their_ends(clinic: Clinic, clock: Clock) -> None:
    watcher = Watcher(clinic.status, clock)
    for epoch in range(5000):
        clock.now, clinic.epoch = 1000.0 + epoch, epoch % 500
        watcher.look()
    points = watcher.curves["registry"].points
    assert 50 <= len(points) <= 240
    assert points[0][0] == 1000.0 and points[-1][0] > 5900
    assert watcher.curves["accuracy"].points == [(1000.0, 97.4)]


def test_a_status_that_fails_is_told_and_the_last_one_kept(clinic: Clinic, clock: Clock) -> None:
    watcher = Watcher(clinic.status, clock)
    watcher.look()
    clock.now += 5
    watcher._status = lambda: 1 / 0  # type: ignore[assignment,return-value]
    watcher.look()
    newest = watcher.newest()
    assert newest["trouble"] == "no status (ZeroDivisionError)"
    assert newest["status"]["federation"] == "clinics" and newest["now_s"] - newest["seen_s"] == 5
