"""A party's connection to a broker, over a link that fails."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from dvfl.federation.transport import nats as nats_line
from dvfl.federation.transport.nats import Connection
from dvfl.lab.proxy import Proxy

if TYPE_CHECKING:
    from conftest import Brokered


async def until(holds: Callable[[], bool], seconds: float = 15.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.05)


def over_a_link(
    made: "Brokered",
    story: Callable[[Connection, Proxy], Awaitable[None]],
    log: Callable[[str], None] = lambda text: None,
) -> None:
    """Runs a story in which a guest keeps a connection through a proxy."""

    async def run() -> None:
        site = made.broker.site
        proxy = Proxy(site.url.removeprefix("tls://"))
        await proxy.start()
        connection = Connection(made.folder("guest-1"), site.host, site.federation, proxy.address, log)
        keeping = asyncio.create_task(connection.keep())
        try:
            await story(connection, proxy)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await proxy.close()

    asyncio.run(run())


def test_a_connection_is_made_though_attempts_before_were_taken_and_reset(own_federation: "Brokered") -> None:
    async def story(connection: Connection, proxy: Proxy) -> None:
        await asyncio.sleep(1.5)
        assert connection.client is None
        await asyncio.to_thread(own_federation.broker.start)
        await until(lambda: connection.client is not None)

    over_a_link(own_federation, story)


def test_a_broker_that_is_away_for_long_is_said_once_and_again_when_it_is_back(
    own_federation: "Brokered", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_line, "_TELL_S", 0.5)
    said: list[str] = []

    async def story(connection: Connection, proxy: Proxy) -> None:
        await until(lambda: bool(said))
        await asyncio.sleep(1.0)
        assert len(said) == 1
        assert said[0].startswith(f"host-1 is not reached at {proxy.address} (")
        await asyncio.to_thread(own_federation.broker.start)
        await until(lambda: connection.client is not None)
        assert said[1:] == [f"host-1 is reached at {proxy.address}"]

    over_a_link(own_federation, story, said.append)


def test_a_connection_that_is_cut_is_made_again(brokered: "Brokered") -> None:
    async def story(connection: Connection, proxy: Proxy) -> None:
        for _ in range(2):
            await until(lambda: connection.client is not None)
            await proxy.fail("cut")
            await until(lambda: connection.client is None)
            await proxy.mend()
        await until(lambda: connection.client is not None)

    over_a_link(brokered, story)


def test_a_connection_is_made_again_after_one_that_was_taken_in_silence(brokered: "Brokered") -> None:
    async def story(connection: Connection, proxy: Proxy) -> None:
        await until(lambda: connection.client is not None)
        await proxy.fail("cut")
        await proxy.fail("half-open")
        await until(lambda: connection.client is None)
        await asyncio.sleep(1.0)
        await proxy.fail("cut")
        await proxy.mend()
        await until(lambda: connection.client is not None)

    over_a_link(brokered, story)
