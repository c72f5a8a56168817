"""A clinic and a server around it for each test; all of it needs the extra dvfl[serve]."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra dvfl[serve] is not installed")

import httpx
from clinic import Clinic, running


@pytest.fixture
def clinic() -> Clinic:
    return Clinic()


@pytest.fixture
def log() -> list[dict[str, Any]]:
    """What the server writes of each request."""
    return []


@pytest.fixture
def server(clinic: Clinic, log: list[dict[str, Any]]) -> Iterator[str]:
    """An open server on loopback; its address."""
    with running(clinic, log=log) as address:
        yield address


@pytest.fixture
def client(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, timeout=10) as client:
        yield client
