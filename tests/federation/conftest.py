"""A small federation with a real broker: two guests, a host and the owner, each with its folder and its keys."""

import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from dvfl.federation.keys.authority import Authority, make_authority
from dvfl.federation.keys.credentials import client_options, write_authority, write_credentials
from dvfl.federation.protocol.messages import Role
from dvfl.federation.transport.accounts import Site
from dvfl.federation.transport.broker import Broker, find_server

FEDERATION, GUESTS, HOST, OWNER = "practice", ("guest-1", "guest-2"), "host-1", "owner"


@dataclass(frozen=True)
class Brokered:
    """All folders lie side by side under `root`; the broker is that of `host-1`."""

    root: Path
    authority: Authority
    broker: Broker

    def folder(self, party: str) -> Path:
        return self.root / party

    def admit(self, party: str, role: Role) -> Path:
        """Gives one more party its folder; the broker hears of it only by a reload."""
        write_credentials(
            self.folder(party),
            self.authority,
            party=party,
            role=role,
            federation=FEDERATION,
            days=30,
            now=datetime.now(UTC),
        )
        return self.folder(party)

    @contextlib.asynccontextmanager
    async def connected(self, party: str, **options: Any) -> AsyncIterator[Client]:
        """A party's connection to the broker. It gives up at once: a test waits for nothing."""
        settings: dict[str, Any] = {
            **client_options(self.folder(party), HOST, FEDERATION),
            "allow_reconnect": False,
            "connect_timeout": 3,
            "error_cb": _quiet,
        }
        client = await nats.connect(self.broker.site.url, **(settings | options))
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # the broker may be gone, which `close` does not expect
                await client.close()

    async def flushed(self, *clients: Client) -> None:
        """Waits until the broker has taken all that these clients sent and subscribed to."""
        for client in clients:
            for _ in range(2):  # nats-py's ping overtakes what it has not written yet
                await client.flush()


async def _quiet(error: Exception) -> None:
    """Errors that come on their own are for tests that look at them."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _federation(root: Path) -> Brokered:
    authority = make_authority(FEDERATION, datetime.now(UTC))
    site = Site(FEDERATION, HOST, GUESTS, OWNER, root / HOST, f"127.0.0.1:{_free_port()}")
    made = Brokered(root, authority, Broker(site, find_server(None)))
    roles: dict[str, Role] = {**dict.fromkeys(GUESTS, "guest"), HOST: "host", OWNER: "owner"}
    for party, role in roles.items():
        made.admit(party, role)
    write_authority(root / OWNER, authority)
    return made


@pytest.fixture(scope="session")
def brokered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokered]:
    """One federation for all tests that leave its broker and its members as they are."""
    made = _federation(tmp_path_factory.mktemp("federation"))
    made.broker.start()
    yield made
    made.broker.stop()


@pytest.fixture
def own_federation(tmp_path: Path) -> Iterator[Brokered]:
    """A federation of a test's own; its broker does not run yet."""
    made = _federation(tmp_path)
    yield made
    made.broker.stop()


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Finds a port of 127.0.0.1 that nobody has."""
    return _free_port
