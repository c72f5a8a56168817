"""Predictions over HTTP: what is answered, and what is refused and how."""

import json
import math
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from clinic import Clinic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def predict(client: httpx.Client, ids: list[str], **more: Any) -> httpx.Response:
    return client.post("/v1/predict", json={"ids": ids, **more})


def error_of(response: httpx.Response) -> str:
    body = response.json()
    assert list(body) == ["error"]
    assert "\n" not in body["error"]
    return str(body["error"])


def test_ids_are_answered_in_their_order_and_unknown_ones_are_named(client: httpx.Client) -> None:
    answer = predict(client, ["7", "nobody", "12", "7"]).json()
    assert [one["id"] for one in answer["predictions"]] == ["7", "nobody", "12", "7"]
    assert [one["known"] for one in answer["predictions"]] == [True, False, True, True]
    assert answer["unknown"] == ["nobody"] and answer["degraded"] == 0
    first = answer["predictions"][0]
    assert first["class"] == max(first["probabilities"], key=first["probabilities"].get)
    assert first["confidence"] == first["probabilities"][first["class"]]
    assert first["guests"]["imaging"] == {"state": "fresh", "age_s": 0.0, "suspected": False}
    assert first["hosts"] == {"north": True, "south": True}


def test_an_answer_without_a_guest_says_what_it_rests_on(client: httpx.Client, clinic: Clinic) -> None:
    clinic.down, clinic.suspected = {"laboratory", "south"}, {"pharmacy"}
    answer = predict(client, ["7"]).json()
    (one,) = answer["predictions"]
    assert one["degraded"] and answer["degraded"] == 1
    assert one["guests"]["laboratory"] == {"state": "cached", "age_s": 95.0, "suspected": False}
    assert one["guests"]["pharmacy"] == {"state": "absent", "age_s": None, "suspected": True}
    assert one["hosts"] == {"north": True, "south": False}


def test_without_any_host_the_answer_comes_and_is_empty(client: httpx.Client, clinic: Clinic) -> None:
    clinic.down = set(clinic.hosts)
    response = predict(client, ["7"])
    assert response.status_code == 200
    (one,) = response.json()["predictions"]
    assert (one["answered"], one["class"], one["known"]) == (False, None, True)


def test_what_json_has_no_number_for_is_null(client: httpx.Client, clinic: Clinic) -> None:
    clinic.classes = None
    clinic.value = math.inf
    (one,) = predict(client, ["7"]).json()["predictions"]
    assert (one["value"], one["class"], one["probabilities"], one["answered"]) == (None, None, {}, True)
    clinic.value = 3.5
    assert predict(client, ["7"]).json()["predictions"][0]["value"] == 3.5


def test_ten_thousand_ids_fit_and_one_more_does_not(client: httpx.Client) -> None:
    ids = [str(number) for number in range(10_000)]
    assert len(predict(client, ids).json()["predictions"]) == 10_000
    response = predict(client, [*ids, "1"])
    assert response.status_code == 422 and "10000" in error_of(response)


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"{'ids': 1}", b"[" * 100_000])
def test_what_is_not_json_is_400_and_says_what_is_right(client: httpx.Client, body: bytes) -> None:
    response = client.post("/v1/predict", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    said = error_of(response)
    assert said.startswith("the body is not JSON") and said.endswith("is right")


@pytest.mark.parametrize(
    "body",
    [
        [],
        "7",
        {},
        {"ids": []},
        {"ids": [7]},
        {"ids": ["7", None]},
        {"ids": [""]},
        {"ids": ["7" * 257]},
        {"ids": "7"},
        {"ids": ["7"], "deadline_s": 0},
        {"ids": ["7"], "deadline_s": 61},
        {"ids": ["7"], "deadline_s": "2"},
        {"ids": ["7"], "deadline_s": True},
        {"ids": ["7"], "deadlines": 2},
    ],
)
def test_json_of_another_shape_is_422_and_says_what_is_right(client: httpx.Client, body: Any) -> None:
    response = client.post("/v1/predict", json=body)
    assert response.status_code == 422
    assert error_of(response).endswith("is right")


@pytest.mark.parametrize("body", [b"", b"null"])
def test_no_body_is_422(client: httpx.Client, body: bytes) -> None:
    response = client.post("/v1/predict", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422
    assert error_of(response).startswith("the body:")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_deadline_that_is_no_number_is_422(client: httpx.Client, number: str) -> None:
    body = f'{{"ids": ["7"], "deadline_s": {number}}}'
    response = client.post("/v1/predict", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422


def test_another_type_than_json_is_415(client: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        response = client.post("/v1/predict", content=b'{"ids": ["7"]}', headers={"content-type": kind})
        assert response.status_code == 415
        error_of(response)


def test_a_large_body_is_refused_before_it_is_read(server: str) -> None:
    place = urlsplit(server)
    assert place.hostname and place.port
    head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((place.hostname, place.port), 5) as line:
        line.sendall(f"{head}Content-Length: 900000000\r\n\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_of_unknown_length_is_cut_off_at_the_same_size(client: httpx.Client) -> None:
    pieces = (b" " * 65536 for _ in range(40))
    try:
        response = client.post("/v1/predict", content=pieces, headers={"content-type": "application/json"})
    except httpx.WriteError:
        return  # it closed while we were still sending, which is as good
    assert response.status_code == 413


def test_before_training_has_finished_it_says_how_far(client: httpx.Client, clinic: Clinic) -> None:
    clinic.ready = False
    response = predict(client, ["7"])
    assert response.status_code == 503
    assert "epoch 3 of 20" in error_of(response) and "retry-after" in response.headers


def test_a_deadline_that_is_not_kept_ends_in_504_and_no_hang(client: httpx.Client, clinic: Clinic) -> None:
    clinic.seconds = 60.0
    response = predict(client, ["7"], deadline_s=0.1)
    assert response.status_code == 504
    assert response.elapsed.total_seconds() < 3
    error_of(response)


def test_a_defect_shows_no_trace_of_itself(client: httpx.Client, clinic: Clinic, log: list[dict[str, Any]]) -> None:
    clinic.broken = True
    response = predict(client, ["4711"])
    assert response.status_code == 500
    assert error_of(response) == "a defect of the server; its log says more"
    assert "x-content-type-options" in response.headers
    assert any(entry.get("error") == "RuntimeError" and "clinic.py" in entry["at"] for entry in log)
    assert "4711" not in str(log)


def test_the_log_has_a_line_for_each_request_and_no_id(client: httpx.Client, log: list[dict[str, Any]]) -> None:
    predict(client, ["4711", "nobody-4712"])
    client.get("/patients/4711?id=4711")
    until = time.monotonic() + 5
    while len(log) < 2 and time.monotonic() < until:  # a line is written after its answer
        time.sleep(0.01)
    found = [entry for entry in log if "path" in entry]
    assert [(one["path"], one["status"]) for one in found] == [("/v1/predict", 200), ("other", 404)]
    assert (found[0]["ids"], found[0]["unknown"], found[0]["degraded"]) == (2, 1, 0)
    assert "471" not in json.dumps([{**entry, "time": "", "ms": 0} for entry in log])


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(st.text(min_size=1, max_size=256), min_size=1, max_size=20))
def test_any_text_is_an_id(client: httpx.Client, ids: list[str]) -> None:
    response = predict(client, ids)
    assert response.status_code in (200, 429)
    if response.status_code == 200:
        assert [one["id"] for one in response.json()["predictions"]] == ids
