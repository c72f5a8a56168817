"""Streams: their caps, their identity, and what becomes of those of removed guests."""

import asyncio
import shutil
from typing import TYPE_CHECKING

from nats.aio.client import Client

from dvfl.federation.transport.streams import drop_other_streams, ensure_stream

if TYPE_CHECKING:
    from conftest import Brokered

KIB = 1 << 10


async def push(client: Client, data: bytes) -> bytes:
    return (await client.request("push", data, timeout=2)).data


async def identity(federation: "Brokered") -> str:
    async with federation.connected("host-1") as host:
        return await ensure_stream(host.jetstream(), "guest-1", 64 * KIB, 4 * KIB)


def test_a_stream_that_is_there_is_kept_with_all_it_holds(own_federation: "Brokered") -> None:
    own_federation.broker.start()

    async def twice() -> None:
        async with own_federation.connected("host-1") as host, own_federation.connected("guest-1") as guest:
            js = host.jetstream()
            first = await ensure_stream(js, "guest-1", 64 * KIB, 4 * KIB)
            await push(guest, b"encodings")
            assert await ensure_stream(js, "guest-1", 64 * KIB, 4 * KIB) == first
            assert (await js.stream_info("G-guest-1")).state.messages == 1

    asyncio.run(twice())


def test_other_caps_are_taken_over_by_a_stream_that_is_there(own_federation: "Brokered") -> None:
    own_federation.broker.start()

    async def widened() -> None:
        async with own_federation.connected("host-1") as host, own_federation.connected("guest-1") as guest:
            js = host.jetstream()
            first = await ensure_stream(js, "guest-1", 64 * KIB, 4 * KIB)
            assert b"message size exceeds maximum" in await push(guest, bytes(5 * KIB))
            assert await ensure_stream(js, "guest-1", 128 * KIB, 8 * KIB) == first
            assert b'"seq":1' in await push(guest, bytes(5 * KIB))
            assert (await js.stream_info("G-guest-1")).config.max_bytes == 128 * KIB

    asyncio.run(widened())


def test_a_restart_of_the_broker_leaves_the_identity(own_federation: "Brokered") -> None:
    own_federation.broker.start()
    before = asyncio.run(identity(own_federation))
    own_federation.broker.restart()
    assert asyncio.run(identity(own_federation)) == before


def test_a_lost_store_gives_another_identity(own_federation: "Brokered") -> None:
    own_federation.broker.start()
    before = asyncio.run(identity(own_federation))
    own_federation.broker.stop()
    shutil.rmtree(own_federation.broker.site.home / "streams")
    own_federation.broker.start()
    assert asyncio.run(identity(own_federation)) != before


def test_streams_of_removed_guests_are_deleted_and_no_others(own_federation: "Brokered") -> None:
    own_federation.broker.start()

    async def dropped() -> None:
        async with own_federation.connected("host-1") as host:
            js = host.jetstream()
            assert await drop_other_streams(js, ["guest-1"]) == []
            for guest in ("guest-1", "guest-2", "guest-3"):
                await ensure_stream(js, guest, 64 * KIB, 4 * KIB)
            assert await drop_other_streams(js, ["guest-1", "guest-4"]) == ["guest-2", "guest-3"]
            assert [info.config.name for info in await js.streams_info()] == ["G-guest-1"]

    asyncio.run(dropped())


def test_not_even_the_host_can_delete_or_purge_messages_of_a_stream(own_federation: "Brokered") -> None:
    own_federation.broker.start()

    async def attempts() -> None:
        async with own_federation.connected("host-1") as host, own_federation.connected("guest-1") as guest:
            await ensure_stream(host.jetstream(), "guest-1", 64 * KIB, 4 * KIB)
            await push(guest, b"encodings")
            for subject, data in (("PURGE", b""), ("MSG.DELETE", b'{"seq": 1}')):
                answer = await host.request(f"$JS.API.STREAM.{subject}.G-guest-1", data, timeout=2)
                assert b"not permitted" in answer.data
            assert (await host.jetstream().stream_info("G-guest-1")).state.messages == 1

    asyncio.run(attempts())
