"""Predictions over HTTP by real parties on this machine, beside a bare request and reply over the same brokers.

    python benchmarks/serving.py --data-dir DIR [--rows 10000] [--seconds 60] [--out FILE]

MNIST, 4 guests, 2 hosts. One id at a time, 20 requests a second; the bare exchanges (an echo in another process, the
same broker, TLS and pace) before and after. Then the same load while a guest is killed, and all ids in one request.
Prints JSON.
"""

import argparse
import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from nats.aio.client import Client
from nats.aio.msg import Msg

from dvfl.federation.keys.credentials import client_options
from dvfl.federation.party.settings import read_federation, read_guest
from dvfl.files import write_json

DVFL = [sys.executable, "-m", "dvfl"]
GUESTS, HOSTS, PACE = 4, 2, 20  # requests a second
ECHO, READY = "bench.echo", "ready"
DEADLINE_S = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--echo", type=Path, help=argparse.SUPPRESS)  # this program as the other end
    given = parser.parse_args()
    if given.echo is not None:
        asyncio.run(echo(given.echo))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "practice"
        options = ["--guests", str(GUESTS), "--hosts", str(HOSTS), "--dataset", "mnist", "--rows", str(given.rows)]
        options += ["--data-dir", str(given.data_dir)] if given.data_dir else []
        subprocess.run([*DVFL, "federation", "init", str(folder), *options], check=True, stdout=subprocess.DEVNULL)
        found = served(folder, given.seconds)
    print(json.dumps(found))
    if given.out is not None:
        write_json(given.out, found)


def served(folder: Path, seconds: float) -> dict[str, Any]:
    """Everything that is measured, with the parties of a folder."""
    command = [*DVFL, "federation", "up", str(folder), "--keep", "--page", "--page-port", "0"]
    parties = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert parties.stdout is not None
        page = re.search(r"the page is at http://([^/]+)/", parties.stdout.readline())
        assert page is not None
        address = page.group(1)
        until_ready(address)
        ids = [str(one) for one in pq.read_table(folder / "owner" / "labels.parquet")["id"].to_pylist()]
        bare = [bare_exchanges(folder, seconds / 4)]
        quiet = load(address, ids, seconds)
        bare.append(bare_exchanges(folder, seconds / 4))
        guest = int((folder / "guest-2" / ".lock").read_text())
        killed = load(address, ids, seconds / 2, strike=lambda: os.kill(guest, signal.SIGKILL))
        answered, spent = batch(address, ids)
        whole = {"ids": len(ids), "answered": answered, "seconds": round(spent, 2)}
        middle = float(np.median(np.concatenate(bare)))
        return {
            "bare_p50_ms": round(middle, 2),
            "one_id": quiet,
            "ratio_p50": round(quiet["p50_ms"] / middle, 2),
            "guest_killed": killed,
            "batch": {**whole, "ids_a_second": round(answered / spent)},
            "cores": os.cpu_count(),
        }
    finally:
        parties.send_signal(signal.SIGINT)
        parties.communicate(timeout=60)


def until_ready(address: str) -> None:
    """Waits until the head is trained and everybody is there."""
    until = time.monotonic() + 600
    while time.monotonic() < until:
        status, answer = exchange(http.client.HTTPConnection(address, timeout=10), "GET", "/v1/status")
        everybody = [*answer.get("guests", {}).values(), *answer.get("hosts", {}).values()]
        if status == 200 and answer["ready"] and all(party["up"] for party in everybody):
            return
        time.sleep(1)
    raise SystemExit("the parties were not ready in time")


def exchange(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """One request: status and answer."""
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def load(address: str, ids: list[str], seconds: float, strike: Callable[[], None] | None = None) -> dict[str, Any]:
    """One id at a time at a steady pace; something happens after a quarter of it."""
    draw, connection = np.random.default_rng(0), http.client.HTTPConnection(address, timeout=10)
    exchange(connection, "POST", "/v1/predict", {"ids": ids[:1], "deadline_s": DEADLINE_S})
    count, struck, first = int(seconds * PACE), None, time.perf_counter()
    spent, failed, degraded = [], 0, 0
    for number in range(count):
        time.sleep(max(0.0, first + number / PACE - time.perf_counter()))
        if strike is not None and struck is None and number >= count // 4:
            strike()
            struck = time.perf_counter()
        begun = time.perf_counter()
        one = ids[int(draw.integers(len(ids)))]
        status, answer = exchange(connection, "POST", "/v1/predict", {"ids": [one], "deadline_s": DEADLINE_S})
        spent.append((time.perf_counter() - begun) * 1000)
        right = status == 200 and answer["predictions"][0]["class"] is not None
        grace = struck is not None and begun - struck < DEADLINE_S
        failed += not right and not grace
        degraded += right and answer["predictions"][0]["degraded"]
    return {
        "requests": count,
        "failed": failed,
        "degraded": degraded,
        **{f"p{part}_ms": round(float(np.percentile(spent, part)), 2) for part in (50, 90, 99)},
        "max_ms": round(max(spent), 1),
    }


def batch(address: str, ids: list[str]) -> tuple[int, float]:
    """Every id in one request: how many were answered, and the seconds."""
    connection = http.client.HTTPConnection(address, timeout=60)
    begun = time.perf_counter()
    status, answer = exchange(connection, "POST", "/v1/predict", {"ids": ids, "deadline_s": 30.0})
    spent = time.perf_counter() - begun
    assert status == 200, answer
    return sum(one["class"] is not None for one in answer["predictions"]), spent


def bare_exchanges(folder: Path, seconds: float) -> list[float]:
    """Milliseconds of requests that an echo in another process answers."""
    command = [sys.executable, __file__, "--echo", str(folder)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline().strip() == READY
        return asyncio.run(requests(folder, seconds))
    finally:
        other.kill()
        other.wait()


async def requests(folder: Path, seconds: float) -> list[float]:
    client, first, spent = await connected(folder), time.perf_counter(), []
    for number in range(int(seconds * PACE)):
        await asyncio.sleep(max(0.0, first + number / PACE - time.perf_counter()))
        begun = time.perf_counter()
        await client.request(ECHO, b"x" * 64, timeout=5)
        spent.append((time.perf_counter() - begun) * 1000)
    await client.close()
    return spent


async def echo(folder: Path) -> None:
    """The other end."""
    client = await connected(folder)

    async def answer(message: Msg) -> None:
        await message.respond(message.data)

    await client.subscribe(ECHO, cb=answer)
    await client.flush()
    print(READY, flush=True)
    await asyncio.Event().wait()


async def connected(folder: Path) -> Client:
    """As the first host, whose account both ends share."""
    federation = read_federation(folder / "guest-1")
    address = read_guest(folder / "guest-1", federation).hosts["host-1"]
    client = Client()
    await client.connect(f"tls://{address}", **client_options(folder / "host-1", "host-1", federation.name))
    return client


if __name__ == "__main__":
    main()
