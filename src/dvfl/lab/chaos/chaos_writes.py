"""Whether a finished run kept its word: what brokers acknowledged is in the hosts' tables, or newer writes are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from nats.js.errors import NotFoundError

from dvfl.errors import RunFailed
from dvfl.federation.host.known_guests import GuestKnown
from dvfl.federation.party.lifecycle import held
from dvfl.federation.party.settings import Federation, HostFile, read_host
from dvfl.federation.party.storage import DiskStorage, TableArrays
from dvfl.federation.protocol.plan import Plan, read_plan
from dvfl.federation.protocol.wire import BadMessage, Encodings, decode
from dvfl.federation.transport.accounts import Site
from dvfl.federation.transport.broker import Broker, find_server
from dvfl.federation.transport.nats import Connection, NatsHostLine
from dvfl.federation.transport.streams import stream_name

Fate = Literal["applied", "superseded", "too_late", "lost"]
_CONNECT_S = 30.0
_SILENT = 5  # empty answers in a row, of a second each
_EXAMPLES = 5


@dataclass
class Writes:
    """What became of the acknowledged writes that the brokers still hold; earlier ones made room for them."""

    applied: int = 0  # the table has exactly this one
    superseded: int = 0  # the table has newer ones, or the whole sweep of the same encoder
    too_late: int = 0  # came after the host froze, without a guest's whole sweep, at its deadline
    bad: int = 0  # no message that a host would believe
    lost: int = 0
    made_room: int = 0  # acknowledged, read long ago, and let go by a full stream
    stale_slots: int = 0  # of guests whose whole sweep is there, and yet not in these slots
    examples: list[str] = field(default_factory=list)  # of what was lost

    @property
    def checked(self) -> int:
        return self.applied + self.superseded + self.too_late + self.bad + self.lost

    def to_dict(self) -> dict[str, object]:
        return {"checked": self.checked, **asdict(self)}


async def check_writes(folder: Path, federation: Federation, hosts: list[str]) -> Writes:
    """Reads every message that the hosts' brokers hold and compares it with the hosts' tables; no party may run."""
    found = Writes()
    for host in hosts:
        own = folder / host
        with held(own, host):
            await _check_host(own, federation, read_host(own, federation), found)
    return found


async def _check_host(own: Path, federation: Federation, file: HostFile, found: Writes) -> None:
    storage = DiskStorage(own / "state")
    saved = storage.load()
    if saved is None or not saved.values["plan"]:
        raise RunFailed(f"{own}: no run was begun here, so nothing can be compared")
    plan = read_plan(saved.values["plan"], federation.key()).plan
    async with _connected(own, federation, file) as connection:
        line = NatsHostLine(connection, file.broker.stream_megabytes << 20)
        for guest, width in zip(plan.guests, plan.sizes.guest_latent, strict=True):
            arrays, whole = storage.table(guest.name, plan.all_slots, width)
            if not whole:
                raise RunFailed(f"{own}: the table of {guest.name} is not as its host left it")
            known = saved.values["guests"][guest.name]
            known = GuestKnown(**{**known, "swept": set(known["swept"])})
            first, last = await _bounds(connection, guest.name)
            found.made_room += max(0, first - 1)
            async for data in _messages(line, guest.name, last):
                _count(found, data, plan, known, arrays, bool(saved.values["frozen"]), f"{file.party}: {guest.name}")
            if known.whole:
                found.stale_slots += _stale(arrays, plan)
    storage.close()


async def _bounds(connection: Connection, guest: str) -> tuple[int, int]:
    """The numbers of the first and the last message in a guest's stream; 0 where it has none."""
    assert connection.client is not None
    try:
        state = (await connection.client.jetstream().stream_info(stream_name(guest))).state
    except NotFoundError:
        return 0, 0
    return state.first_seq, state.last_seq if state.messages else 0


async def _messages(line: NatsHostLine, guest: str, last: int) -> AsyncIterator[bytes]:
    """All that a guest's stream holds."""
    stream, sequence, silent = "", 0, 0
    while sequence < last:
        post = await line.fetch(guest, stream, sequence)
        silent = silent + 1 if post is None or not post.messages else 0
        if post is None or silent > _SILENT:
            raise RunFailed(f"what {guest} pushed cannot be read: the broker does not give it out")
        stream = post.stream
        for number, data in post.messages:
            sequence = number
            yield data


def _count(
    found: Writes, data: bytes, plan: Plan, known: GuestKnown, arrays: TableArrays, frozen: bool, where: str
) -> None:
    try:
        message = decode(data, Encodings)
    except BadMessage:
        found.bad += 1
        return
    fate = _fate(message, plan, known, arrays, frozen)
    setattr(found, fate, getattr(found, fate) + 1)
    if fate == "lost" and len(found.examples) < _EXAMPLES:
        found.examples.append(f"{where} {message.epoch}.{message.iteration}")


def _fate(message: Encodings, plan: Plan, known: GuestKnown, arrays: TableArrays, frozen: bool) -> Fate:
    if message.run != plan.run or message.lineage != known.lineage:
        return "superseded"
    stamp, step = message.incarnation, message.epoch << 32 | message.iteration
    slots = message.slots.astype(np.intp)
    incarnations, steps = arrays.incarnations[slots], arrays.steps[slots]
    older = (incarnations < stamp) | ((incarnations == stamp) & (steps < step))
    if not older.any():
        return "applied" if ((incarnations == stamp) & (steps == step)).all() else "superseded"
    if not known.whole:
        return "too_late" if frozen else "lost"
    # A whole sweep is the same however often it is repeated, and the last word on all that came from training.
    covered = message.sweep is None or message.sweep.encoder == known.sweep
    return "superseded" if covered and _swept(steps, plan).all() else "lost"


def _stale(arrays: TableArrays, plan: Plan) -> int:
    """Slots that are held, but not from a final sweep."""
    return int(((arrays.incarnations[:] > 0) & ~_swept(arrays.steps[:], plan)).sum())


def _swept(steps: np.ndarray, plan: Plan) -> np.ndarray:
    """Which of these steps are of a final sweep: it comes after all epochs of training."""
    swept: np.ndarray = steps >> 32 > plan.guest_epochs
    return swept


@asynccontextmanager
async def _connected(own: Path, federation: Federation, file: HostFile) -> AsyncIterator[Connection]:
    """The host's connection to its own broker, which is started for this alone."""
    listen, guests = file.broker.listen, tuple(federation.guests)
    site = Site(federation.name, file.party, guests, federation.owner, own, listen)
    broker = Broker(site, find_server(file.broker.server))
    connection = Connection(own, file.party, federation.name, site.url.removeprefix("tls://"))
    await asyncio.to_thread(broker.start)
    keeping = asyncio.create_task(connection.keep())
    try:
        async with asyncio.timeout(_CONNECT_S):
            while connection.client is None:
                await asyncio.sleep(0.05)
        yield connection
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await asyncio.to_thread(broker.stop)
