"""A host's line to its own broker: reading a stream from a place, gaps, other streams, and leaving."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dvfl.federation.transport.line import Post
from dvfl.federation.transport.nats import Connection, NatsHostLine

if TYPE_CHECKING:
    from conftest import Brokered

KEPT = 4096  # bytes of the streams here


def with_line(
    federation: "Brokered", story: Callable[[Connection, NatsHostLine], Awaitable[None]], kept: int = 1 << 20
) -> None:
    """Tells a story on a broker of its own, on the host's connection."""

    async def told() -> None:
        site = federation.broker.site
        connection = Connection(site.folder, site.host, site.federation, site.url.removeprefix("tls://"))
        keeping = asyncio.create_task(connection.keep())
        try:
            while connection.client is None:
                await asyncio.sleep(0.01)
            await asyncio.wait_for(story(connection, NatsHostLine(connection, kept)), 30)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    federation.broker.start()
    try:
        asyncio.run(told())
    finally:
        federation.broker.stop()


async def opened(line: NatsHostLine) -> str:
    """The identity of the guest's stream, which is there afterwards."""
    post = await line.fetch("guest-1", "", 0)
    assert post is not None and not post.messages
    return post.stream


async def pushed(federation: "Brokered", *messages: bytes) -> None:
    async with federation.connected("guest-1") as guest:
        for message in messages:
            await guest.request("push", message, timeout=3)


def test_messages_come_in_order_with_their_numbers_from_where_one_was(own_federation: "Brokered") -> None:
    async def story(connection: Connection, line: NatsHostLine) -> None:
        stream = await opened(line)
        await pushed(own_federation, b"one", b"two", b"three")
        assert await line.fetch("guest-1", stream, 1) == Post(stream, [(2, b"two"), (3, b"three")], gap=False)
        assert await line.fetch("guest-1", stream, 3) == Post(stream, [], gap=False)

    with_line(own_federation, story)


def test_messages_that_are_gone_unread_are_a_gap(own_federation: "Brokered") -> None:
    async def story(connection: Connection, line: NatsHostLine) -> None:
        stream = await opened(line)
        await pushed(own_federation, *(bytes(1000) for _ in range(10)))
        post = await line.fetch("guest-1", stream, 0)
        assert post is not None and post.gap
        assert post.messages[0][0] > 1

    with_line(own_federation, story, KEPT)


def test_a_place_beyond_the_streams_end_is_a_gap(own_federation: "Brokered") -> None:
    async def story(connection: Connection, line: NatsHostLine) -> None:
        stream = await opened(line)
        assert await line.fetch("guest-1", stream, 99) == Post(stream, [], gap=True)

    with_line(own_federation, story)


def test_a_place_in_another_stream_is_answered_with_this_ones_identity(own_federation: "Brokered") -> None:
    async def story(connection: Connection, line: NatsHostLine) -> None:
        stream = await opened(line)
        assert await line.fetch("guest-1", "another", 7) == Post(stream, [], gap=False)

    with_line(own_federation, story)


def test_a_reader_whose_connection_is_closed_can_still_be_cancelled(own_federation: "Brokered") -> None:
    async def story(connection: Connection, line: NatsHostLine) -> None:
        stream = await opened(line)

        async def read() -> None:
            while True:
                await line.fetch("guest-1", stream, 0)
                await asyncio.sleep(0)

        reading = asyncio.create_task(read())
        await asyncio.sleep(0.2)
        assert connection.client is not None
        await connection.client.close()
        reading.cancel()
        done, _ = await asyncio.wait([reading], timeout=5)
        assert done

    with_line(own_federation, story)


def test_bytes_are_counted_through_a_loss_of_the_connection(own_federation: "Brokered") -> None:
    async def story(connection: Connection, line: NatsHostLine) -> None:
        stream = await opened(line)
        await pushed(own_federation, bytes(5000))
        await line.fetch("guest-1", stream, 0)
        before = connection.traffic
        assert before.received >= 5000 and before.sent > 0
        lost = connection.client
        own_federation.broker.restart()
        while connection.client in (None, lost):
            await asyncio.sleep(0.05)
        assert all(now >= then for now, then in zip(connection.traffic, before, strict=True))

    with_line(own_federation, story)
