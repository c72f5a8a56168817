"""Whether a finished run kept its word: what brokers acknowledged is in the hosts' tables, or newer writes are."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from dvfl.errors import RunFailed
from dvfl.federation.accounts import Site
from dvfl.federation.broker import Broker, find_server
from dvfl.federation.host import GuestKnown
from dvfl.federation.nats_line import Connection, NatsHostLine
from dvfl.federation.plan import Plan, read_plan
from dvfl.federation.process import held
from dvfl.federation.settings import Federation, HostFile, read_host
from dvfl.federation.storage import DiskStorage, TableArrays
from dvfl.federation.wire import BadMessage, Encodings, decode

Fate = Literal["applied", "superseded", "too late", "bad", "lost"]
_CONNECT_S = 30.0
_SILENT = 3  # empty answers in a row that mean there is no more


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
    frozen = bool(saved.values["frozen"])
    async with _reading(own, federation, file) as line:
        for guest, width in zip(plan.guests, plan.sizes.guest_latent, strict=True):
            known = saved.values["guests"][guest.name]
            known = GuestKnown(**{**known, "swept": set(known["swept"])})
            arrays, whole = storage.table(guest.name, plan.all_slots, width)
            if not whole:
                raise RunFailed(f"{own}: the table of {guest.name} is not as its host left it")
            first, fates = await _fates(line, guest.name, plan, known, arrays, frozen=frozen)
            _add(found, fates, f"{file.party}: {guest.name}")
            found.made_room += max(0, first - 1)
            if known.whole:
                found.stale_slots += _stale(arrays, plan)
    storage.close()


async def _fates(
    line: NatsHostLine, guest: str, plan: Plan, known: GuestKnown, arrays: TableArrays, *, frozen: bool
) -> tuple[int, list[tuple[Fate, str]]]:
    """The first number that the guest's stream holds, and what became of each message from there."""
    stream, sequence, first, silent = "", 0, 0, 0
    fates: list[tuple[Fate, str]] = []
    while silent < _SILENT:
        post = await line.fetch(guest, stream, sequence)
        if post is None:
            raise RunFailed(f"what {guest} pushed cannot be read: the broker went away")
        if not post.messages:
            silent, stream = silent + (post.stream == stream), post.stream
            continue
        silent = 0
        for number, data in post.messages:
            first, sequence = first or number, number
            try:
                message = decode(data, Encodings)
            except BadMessage as error:
                fates.append(("bad", str(error)))
                continue
            fates.append((_fate(message, plan, known, arrays, frozen=frozen), f"{message.epoch}.{message.iteration}"))
    return first, fates


def _fate(message: Encodings, plan: Plan, known: GuestKnown, arrays: TableArrays, *, frozen: bool) -> Fate:
    if message.run != plan.run or message.lineage != known.lineage:
        return "superseded"
    stamp, step = message.incarnation, message.epoch << 32 | message.iteration
    slots = message.slots.astype(np.intp)
    incarnations, steps = arrays.incarnations[slots], arrays.steps[slots]
    older = (incarnations < stamp) | ((incarnations == stamp) & (steps < step))
    if not older.any():
        return "applied" if ((incarnations == stamp) & (steps == step)).all() else "superseded"
    if known.whole:  # a whole sweep is the same however often it is repeated
        repeated = message.sweep is not None and message.sweep.encoder == known.sweep
        return "superseded" if repeated else "lost"
    return "too late" if frozen else "lost"


def _stale(arrays: TableArrays, plan: Plan) -> int:
    """Slots that are held, but not from a final sweep."""
    return int(((arrays.incarnations[:] > 0) & (arrays.steps[:] >> 32 <= plan.guest_epochs)).sum())


def _add(found: Writes, fates: list[tuple[Fate, str]], where: str) -> None:
    counts = Counter(fate for fate, _ in fates)
    found.applied += counts["applied"]
    found.superseded += counts["superseded"]
    found.too_late += counts["too late"]
    found.bad += counts["bad"]
    found.lost += counts["lost"]
    found.examples += [f"{where} {message}" for fate, message in fates if fate == "lost"][:5]


@asynccontextmanager
async def _reading(own: Path, federation: Federation, file: HostFile) -> AsyncIterator[NatsHostLine]:
    """The host's line to its own broker, started for this alone."""
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
        yield NatsHostLine(connection, file.broker.stream_megabytes << 20)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await asyncio.to_thread(broker.stop)
