"""Limits on what happens at the same time, and on those who take their time."""

import asyncio
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from clinic import Clinic, running
from hypothesis import given
from hypothesis import strategies as st

from dvfl.serving import app, guarding
from dvfl.serving.rates import Rates


def test_predictions_beyond_those_at_once_wait_within_their_own_deadline(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_AT_ONCE", 2)
    clinic.seconds = 0.4

    async def ask(address: str, deadline: float) -> list[int]:
        async with httpx.AsyncClient(base_url=address, timeout=10) as client:
            body = {"ids": ["7"], "deadline_s": deadline}
            answers = await asyncio.gather(*(client.post("/v1/predict", json=body) for _ in range(4)))
            return sorted(answer.status_code for answer in answers)

    with running(clinic) as address:
        assert asyncio.run(ask(address, 5.0)) == [200] * 4
        assert asyncio.run(ask(address, 0.2)) == [200, 200, 503, 503]


def test_pages_beyond_so_many_are_turned_away_and_a_closed_one_makes_room(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_STREAMS", 1)
    with running(clinic) as address, httpx.Client(base_url=address, timeout=5) as client:
        with client.stream("GET", "/v1/events") as first:
            lines = first.iter_lines()  # kept: the stream ends with it
            assert next(lines) == "event: history"
            with client.stream("GET", "/v1/events") as second:
                assert second.status_code == 503
                assert "pages are open" in second.read().decode()
        for _ in range(100):
            with client.stream("GET", "/v1/events") as again:
                if again.status_code == 200:
                    return
    raise AssertionError("no room was made")


def test_a_body_that_does_not_come_is_not_waited_for(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarding, "_BODY_S", 0.2)
    place = urlsplit(server)
    assert place.hostname and place.port
    head = (
        "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    with socket.create_connection((place.hostname, place.port), 5) as line:
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 408")


@given(
    rate=st.floats(0.1, 100),
    waits=st.lists(st.floats(0, 10), min_size=1, max_size=200),
)
def test_nobody_gets_more_than_the_rate_allows(rate: float, waits: list[float]) -> None:
    rates, now, let = Rates(rate), 0.0, 0
    for wait in waits:
        now += wait
        again = rates.take("ward-3", now)
        let += again == 0
        assert again <= 1 / rate + 1e-9
    assert let <= max(1.0, rate) + rate * now + 1e-6


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.serving.rates._KEPT", 10)
    rates = Rates(1)
    for number in range(100):
        assert rates.take(f"address {number}", 0.0) == 0
    assert len(rates._buckets) == 10
    assert rates.take("address 99", 0.0) > 0
