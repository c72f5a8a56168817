"""The failing link: forwards, cuts, delays, takes connections and forwards nothing, and leaves nothing behind."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

import pytest

from dvfl.lab.proxy import Proxy, Way

LIMIT = 10.0  # no test waits longer


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def link() -> AsyncIterator[Proxy]:
    """A proxy in front of a server that says everything back."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy = Proxy(f"{host}:{port}")
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
        server.close()


async def dialled(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = proxy.address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def said_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> bytes:
    writer.write(data)
    return await reader.readexactly(len(data))


def bounded(story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        await asyncio.wait_for(story(), LIMIT)

    asyncio.run(within())


def test_it_forwards_both_ways() -> None:
    async def story() -> None:
        async with link() as proxy:
            reader, writer = await dialled(proxy)
            assert await said_back(reader, writer, b"hello") == b"hello"
            assert proxy.heard > 0

    bounded(story)


def test_a_big_payload_arrives_whole_and_its_end_too() -> None:
    payload = random.Random(0).randbytes(20_000_000)

    async def story() -> None:
        async with link() as proxy:
            reader, writer = await dialled(proxy)

            async def send() -> None:
                writer.write(payload)
                await writer.drain()
                writer.write_eof()

            sending = asyncio.create_task(send())
            assert await reader.read(-1) == payload
            await sending

    bounded(story)


def test_many_connections_do_not_mix() -> None:
    async def story() -> None:
        async with link() as proxy:

            async def one(number: int) -> None:
                reader, writer = await dialled(proxy)
                for turn in range(20):
                    data = f"{number} in turn {turn};".encode() * 100
                    assert await said_back(reader, writer, data) == data
                writer.close()

            await asyncio.gather(*(one(number) for number in range(50)))

    bounded(story)


def test_an_end_that_leaves_is_missed_at_the_other() -> None:
    async def story() -> None:
        async with link() as proxy:
            reader, writer = await dialled(proxy)
            await said_back(reader, writer, b"x")
            writer.close()
            while proxy.connections:
                await asyncio.sleep(0.01)

    bounded(story)


def test_nobody_behind_it_ends_the_connection() -> None:
    async def story() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        proxy = Proxy(f"127.0.0.1:{port}")
        await proxy.start()
        reader, _ = await dialled(proxy)
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        await proxy.close()

    bounded(story)


def test_a_cut_resets_connections_and_refuses_new_ones() -> None:
    async def story() -> None:
        async with link() as proxy:
            reader, writer = await dialled(proxy)
            await said_back(reader, writer, b"x")
            await proxy.fail("cut")
            with pytest.raises(ConnectionResetError):
                await reader.readexactly(1)
            with pytest.raises(ConnectionRefusedError):
                await dialled(proxy)

    bounded(story)


def test_a_mended_cut_has_the_same_address() -> None:
    async def story() -> None:
        async with link() as proxy:
            before = proxy.address
            for _ in range(5):
                await proxy.fail("cut")
                await proxy.mend()
                assert proxy.address == before
                assert await said_back(*await dialled(proxy), b"again") == b"again"

    bounded(story)


def test_a_delay_is_a_latency_each_way_and_no_brake() -> None:
    payload = bytes(2_000_000)

    async def story() -> None:
        async with link() as proxy:
            reader, writer = await dialled(proxy)
            await said_back(reader, writer, b"x")
            await proxy.fail("delay", 0.2)
            began = time.monotonic()
            assert await said_back(reader, writer, payload) == payload
            took = time.monotonic() - began
            assert 0.4 <= took < 3  # were every piece of it held up in turn, it would take six seconds or more
            await proxy.mend()
            began = time.monotonic()
            await said_back(reader, writer, b"x")
            assert time.monotonic() - began < 0.4  # what the delay would cost

    bounded(story)


def test_a_half_open_link_takes_connections_and_says_nothing() -> None:
    async def story() -> None:
        async with link() as proxy:
            old = await dialled(proxy)
            await said_back(*old, b"x")
            await proxy.fail("half-open")
            new = await dialled(proxy)
            for reader, writer in (old, new):
                writer.write(b"anybody?")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.2)
            await proxy.mend()
            for reader, _ in (old, new):
                assert await reader.readexactly(8) == b"anybody?"

    bounded(story)


def test_another_failure_takes_the_place_of_the_last() -> None:
    async def story() -> None:
        async with link() as proxy:
            await proxy.fail("cut")
            await proxy.fail("half-open")
            _, writer = await dialled(proxy)
            writer.close()
            await proxy.fail("delay", 0.01)
            assert await said_back(*await dialled(proxy), b"late") == b"late"

    bounded(story)


@pytest.mark.parametrize("way", ["none", "cut", "delay", "half-open"])
def test_it_closes_cleanly_whatever_it_does(way: Way | Literal["none"]) -> None:
    async def story() -> None:
        async with link() as proxy:
            host, _, port = proxy.address.rpartition(":")
            ends = [await dialled(proxy) for _ in range(5)]
            for reader, writer in ends:
                await said_back(reader, writer, b"x")
            if way != "none":
                await proxy.fail(way, 30)
            for _, writer in ends:
                writer.write(b"unheard")
            await asyncio.sleep(0.05)
            await proxy.close()
            await asyncio.sleep(0)
            assert proxy.connections == 0
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(host, int(port))

    bounded(story)
