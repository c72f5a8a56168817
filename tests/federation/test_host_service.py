"""A running host that goes over to other guests, on its real broker."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from dvfl.federation.host.host import HostParty
from dvfl.federation.host.host_service import HostService
from dvfl.federation.party.runtime import Here
from dvfl.federation.party.storage import DiskStorage
from dvfl.federation.party.tasks import together
from dvfl.federation.protocol.wire import Hello, Welcome, decode, encode
from dvfl.federation.transport.nats import Connection, NatsHostLine

if TYPE_CHECKING:
    from conftest import Brokered


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


@contextlib.asynccontextmanager
async def at_work(federation: "Brokered", tmp_path: Path) -> AsyncIterator[HostService]:
    """The host as its process has it."""
    site, key = federation.broker.site, Ed25519PrivateKey.generate().public_key()
    party = HostParty("host-1", DiskStorage(tmp_path / "state"), key, federation="f" * 64, now_ms=0, log=print)
    connection = Connection(site.folder, site.host, site.federation, site.url.removeprefix("tls://"))
    service, stop = HostService(party, list(site.guests), NatsHostLine(connection, 1 << 20), Here()), asyncio.Event()
    task = asyncio.create_task(together(stop, service.run(stop), connection.keep()))
    try:
        yield service
    finally:
        stop.set()
        await task


def change(federation: "Brokered", service: HostService, guests: tuple[str, ...]) -> None:
    federation.broker.reload(replace(federation.broker.site, guests=guests))
    service.change_guests(list(guests))


async def answers(federation: "Brokered", guest: str) -> int:
    """How many answers a guest's hello gets; the first may need a moment."""
    async with federation.connected(guest) as client:
        heard = await client.subscribe("answers")
        hello = encode(Hello("", guest, 1, 1, 0, 0, "", 0, 0, 0, 0, 0, 0, None, 0.0))
        for _ in range(50):
            with contextlib.suppress(NatsError, asyncio.TimeoutError):
                decode((await client.request("hello", hello, timeout=0.2)).data, Welcome)
                break
            await asyncio.sleep(0.05)
        await client.publish("hello", hello, reply="answers")
        await client.flush()
        await asyncio.sleep(0.3)
        return heard.pending_msgs


def test_a_guest_that_is_admitted_later_is_answered_and_the_others_still_are(
    own_federation: "Brokered", tmp_path: Path
) -> None:
    async def story() -> None:
        own_federation.broker.start()
        async with at_work(own_federation, tmp_path) as service:
            assert await answers(own_federation, "guest-1") == 1
            own_federation.admit("guest-3", "guest")
            change(own_federation, service, ("guest-1", "guest-2", "guest-3"))
            assert [await answers(own_federation, guest) for guest in ("guest-3", "guest-1")] == [1, 1]

    run(story())


def test_a_guest_that_comes_back_is_answered_once(own_federation: "Brokered", tmp_path: Path) -> None:
    async def story() -> None:
        own_federation.broker.start()
        async with at_work(own_federation, tmp_path) as service:
            change(own_federation, service, ("guest-1",))
            with pytest.raises(NatsError, match="Authorization"):
                await answers(own_federation, "guest-2")
            change(own_federation, service, ("guest-1", "guest-2"))
            assert await answers(own_federation, "guest-2") == 1

    run(story())


def test_what_a_guest_had_pushed_goes_with_it(own_federation: "Brokered", tmp_path: Path) -> None:
    async def story() -> None:
        own_federation.broker.start()
        async with at_work(own_federation, tmp_path) as service, own_federation.connected("host-1") as client:
            js = client.jetstream()
            await until(js, {"G-guest-1", "G-guest-2"})
            change(own_federation, service, ("guest-1",))
            await until(js, {"G-guest-1"})

    run(story())


async def until(js: JetStreamContext, streams: set[str]) -> None:
    """Waits for the broker to have these streams and no others."""
    while {info.config.name for info in await js.streams_info()} != streams:
        await asyncio.sleep(0.05)
