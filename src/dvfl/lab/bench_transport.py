"""`dvfl bench transport`: what pushing encodings costs beside plain `nats-py` publishing of the same bytes."""

import asyncio
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats
import numpy as np

from dvfl.federation.custody.founding import free_addresses
from dvfl.federation.guest.guest_training import PACKED
from dvfl.federation.keys.authority import make_authority
from dvfl.federation.keys.credentials import client_options, write_authority, write_credentials
from dvfl.federation.protocol.wire import Encodings, Role, encode
from dvfl.federation.transport.accounts import MAX_PAYLOAD, Site
from dvfl.federation.transport.broker import Broker, check_version, find_server
from dvfl.federation.transport.nats import WINDOW, Connection, NatsGuestLine
from dvfl.federation.transport.streams import ensure_stream

_NAME, _LATENT = "bench", 80
_PARTIES: dict[str, Role] = {"host-1": "host", "guest-1": "guest", "owner": "owner"}


def bench_transport(messages: int, repeats: int) -> dict[str, Any]:
    """Megabytes of encodings a second into a real broker's file-backed stream, with mutual TLS; medians of repeats."""
    server = find_server(None)
    check_version(server)
    with tempfile.TemporaryDirectory() as name:
        folder, now = Path(name), datetime.now(UTC)
        authority = make_authority(_NAME, now)
        write_authority(folder / "owner", authority)
        for party, role in _PARTIES.items():
            write_credentials(folder / party, authority, party=party, role=role, federation=_NAME, days=1, now=now)
        (address,) = free_addresses(1)
        broker = Broker(Site(_NAME, "host-1", ("guest-1",), "owner", folder / "host-1", address), server)
        broker.start()
        try:
            rates = asyncio.run(_measured(folder, address, messages, repeats))
        finally:
            broker.stop()
    raw, ours = (statistics.median(one[number] for one in rates) for number in (0, 1))
    ratio = statistics.median(ours / raw for raw, ours in rates)
    return {"raw_megabytes_per_second": raw, "ours_megabytes_per_second": ours, "ratio": ratio}


async def _measured(folder: Path, address: str, messages: int, repeats: int) -> list[tuple[float, float]]:
    host = await nats.connect(f"tls://{address}", **client_options(folder / "host-1", "host-1", _NAME))
    await ensure_stream(host.jetstream(), "guest-1", 256 << 20, MAX_PAYLOAD)
    connection = Connection(folder / "guest-1", "host-1", _NAME, address)
    keeping = asyncio.create_task(connection.keep())
    try:
        while connection.client is None:
            await asyncio.sleep(0.01)
        made = _made(messages)
        payload = encode(made[0])
        return [
            (await _raw(connection.client, payload, messages), await _ours(NatsGuestLine(connection), made))
            for _ in range(repeats)
        ]
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await host.close()


async def _raw(client: Any, payload: bytes, messages: int) -> float:
    """The same bytes, made once, sent as one would with nats-py: acknowledged, so many under way at a time."""
    room, start = asyncio.Semaphore(WINDOW), time.perf_counter()

    async def send() -> None:
        async with room:
            await client.request("push", payload, timeout=30)

    await asyncio.gather(*(send() for _ in range(messages)))
    return messages * len(payload) / 1e6 / (time.perf_counter() - start)


async def _ours(line: NatsGuestLine, made: list[Encodings]) -> float:
    start, sent = time.perf_counter(), 0
    for message in made:
        data = encode(message)
        await line.push(data)
        sent += len(data)
    await line.flushed()
    return sent / 1e6 / (time.perf_counter() - start)


def _made(messages: int) -> list[Encodings]:
    rng, rows = np.random.default_rng(0), PACKED // (4 * _LATENT + 4)
    values = rng.random((rows, _LATENT), np.float32)
    slots = [rng.permutation(60_000)[:rows].astype(np.int32) for _ in range(messages)]
    return [Encodings("0" * 32, "guest-1", 1, 1, 1, t, None, slots[t], values) for t in range(messages)]
