"""A guest, host or owner as the process that `dvfl guest`, `dvfl host` and `dvfl owner` are."""

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dvfl.align.tasks import Progress
from dvfl.errors import RunFailed, UserError
from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.guest.guest_alignment import GuestAlignment
from dvfl.federation.guest.guest_release import guest_release
from dvfl.federation.guest.guest_service import GuestService
from dvfl.federation.guest.table_watcher import CurrentRows
from dvfl.federation.host.host import HostParty
from dvfl.federation.host.host_service import HostService
from dvfl.federation.keys.credentials import check_client_keys, key_path, read_plan_key
from dvfl.federation.keys.sealing import identity
from dvfl.federation.owner.labels import owner_labels, slot_count
from dvfl.federation.owner.owner import OwnerParty
from dvfl.federation.owner.owner_alignment import Aligned, OwnerAlignment
from dvfl.federation.owner.owner_service import OwnerService
from dvfl.federation.owner.results import result
from dvfl.federation.party.lifecycle import held, report, run, say
from dvfl.federation.party.runtime import Here
from dvfl.federation.party.settings import (
    FEDERATION,
    Federation,
    GuestFile,
    OwnerFile,
    read_federation,
    read_guest,
    read_host,
    read_owner,
)
from dvfl.federation.party.storage import DiskStorage
from dvfl.federation.party.tasks import together
from dvfl.federation.protocol.dropping import Dropped
from dvfl.federation.tables.id_files import slots_file
from dvfl.federation.tables.table import open_table
from dvfl.federation.transport.accounts import Site
from dvfl.federation.transport.broker import Broker, check_version, find_server
from dvfl.federation.transport.journal import Journal
from dvfl.federation.transport.line import HostLine, OwnerLine
from dvfl.federation.transport.nats import Connection, NatsGuestLine, NatsHostLine, NatsOwnerLine
from dvfl.federation.transport.recorded_lines import RecordedHostLine, recorded_guest_lines, recorded_owner_lines
from dvfl.files import write_json, writing

RESULT = "result.json"
_BROKER_S = 0.2  # between two looks at the broker


@dataclass
class Told:
    """What a process says of itself, which becomes another thing with every stage."""

    status: Callable[[], dict[str, Any]]


def run_guest(folder: Path) -> None:
    """Runs until it is asked to leave; begins when its rows have slots."""
    federation = read_federation(folder)
    party = read_guest(folder, federation)
    check_client_keys(folder, party.party, federation.name)
    here = Here()
    with held(folder, party.party):
        storage = DiskStorage(folder / "state")
        connections = {host: Connection(folder, host, federation.name, at, say) for host, at in party.hosts.items()}
        bare = {host: NatsGuestLine(connection) for host, connection in connections.items()}
        lines = recorded_guest_lines(bare, federation.owner, Journal(folder, say) if party.record else None)

        async def work(stop: asyncio.Event, alignment: GuestAlignment | None) -> None:
            if alignment is not None:
                await alignment.serve(lines)
                works = [alignment.slots()]
                if not alignment.done:
                    works.append(report(folder, lambda: _early_status(party.party, "guest", "aligning", connections)))
                await together(stop, *works)
            if stop.is_set():
                return
            files = CurrentRows(folder, federation, party, say)
            guest = await here.work(partial(_opened_guest, folder, federation, party, storage, here))
            about = report(folder, lambda: _guest_status(guest, connections))
            await together(stop, GuestService(guest, lines, here, files).run(stop), about)

        async def serve(stop: asyncio.Event) -> None:
            given = federation.alignment.way == "given"
            alignment = None if given else GuestAlignment(folder, federation, party, storage, here, say)
            failing = [] if alignment is None else [alignment.fail()]
            keeping = [connection.keep() for connection in connections.values()]
            await together(stop, work(stop, alignment), *failing, *keeping)

        run(serve)


def _opened_guest(
    folder: Path, federation: Federation, party: GuestFile, storage: DiskStorage, here: Here
) -> GuestParty:
    """The guest on its table, prepared if it is not yet."""
    data, saved = party.data, storage.load()
    slots = slots_file(folder, data.slots, federation.alignment)
    values, aligned = federation.guests[party.party].values, federation.alignment.way != "given"
    read = partial(open_table, id_column=data.id, slots=slots, values=values, some=aligned)
    schema = saved.values["schema"] if saved else None
    table = read(folder / data.table, prepared=folder / "state" / "table", schema=schema)
    test = None
    if data.test_table is not None:
        test = read(folder / data.test_table, prepared=folder / "state" / "test_table", schema=table.schema)
    return GuestParty(
        party.party,
        table,
        test,
        storage,
        federation.key(),
        federation=federation.hash,
        now_ms=here.now_ms(),
        log=say,
        lineage=secrets.randbits(62),
        release=guest_release(folder, party),
    )


def run_host(folder: Path) -> None:
    """Runs until it is asked to leave, and its broker with it; SIGHUP: takes a new federation.toml and certificates."""
    federation = read_federation(folder)
    party = read_host(folder, federation)
    check_client_keys(folder, party.party, federation.name)
    server = find_server(party.broker.server)
    check_version(server)
    here = Here()
    with held(folder, party.party):
        storage = DiskStorage(folder / "state")
        host = HostParty(
            party.party, storage, federation.key(), federation=federation.hash, now_ms=here.now_ms(), log=say
        )
        guests = list(federation.guests)
        site = Site(federation.name, party.party, tuple(guests), federation.owner, folder, party.broker.listen)
        broker, journal = Broker(site, server), Journal(folder, say) if party.record else None
        broker.start()
        try:
            address = site.url.removeprefix("tls://")
            connection = Connection(folder, party.party, federation.name, address)

            async def serve(stop: asyncio.Event) -> None:
                line: HostLine = NatsHostLine(connection, party.broker.stream_megabytes << 20)
                if journal is not None:
                    line = RecordedHostLine(line, federation.owner, journal)
                service = HostService(host, guests, line, here)
                renew = partial(_renew_host, folder, broker, service)
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)
                about = report(folder, lambda: _host_status(host, connection, here.now_ms()))
                await together(stop, service.run(stop), about, connection.keep(), _keep(broker))

            run(serve)
        finally:
            broker.stop()


def run_owner(folder: Path) -> None:
    """Runs until it is asked to leave; its result is written when its head is trained."""
    federation, party, key = _owner_files(folder)
    here = Here()
    with held(folder, party.party):
        storage = DiskStorage(folder / "state")
        connections = {host: Connection(folder, host, federation.name, at, say) for host, at in party.hosts.items()}
        bare = {host: NatsOwnerLine(connection) for host, connection in connections.items()}
        lines = recorded_owner_lines(bare, Journal(folder, say) if party.record else None)

        told = Told(lambda: _early_status(party.party, "owner", "starting", connections))

        async def align() -> None:
            await _align(folder, federation, party, storage, lines, connections, here, told)

        async def work(stop: asyncio.Event) -> None:
            if federation.alignment.way != "given" and Aligned.read(folder) is None:
                await together(stop, align())
            if stop.is_set():
                return
            owner = await here.work(partial(_opened_owner, folder, federation, party, key, storage, here))

            def finished(owner: OwnerParty) -> None:
                if not owner.resumed_done or not (folder / RESULT).exists():
                    with writing(folder / RESULT):
                        write_json(folder / RESULT, result(owner, party.about, owner.seconds()))

            told.status = lambda: _owner_status(owner, connections)
            await together(stop, OwnerService(owner, lines, here, finished).run(stop))

        async def serve(stop: asyncio.Event) -> None:
            keeping = [connection.keep() for connection in connections.values()]
            await together(stop, work(stop), report(folder, lambda: told.status()), *keeping)

        run(serve)


def run_align(folder: Path, shown: Callable[[Progress], None]) -> Aligned:
    """Aligns and leaves: the first time all rows, later those that have come since."""
    federation, party, _ = _owner_files(folder)
    if federation.alignment.way == "given":
        raise UserError(f"{folder / FEDERATION}: [alignment] way = 'given'; 'union' or 'star' is right to align")
    here, done = Here(), []
    with held(folder, party.party):
        storage = DiskStorage(folder / "state")
        connections = {host: Connection(folder, host, federation.name, at, say) for host, at in party.hosts.items()}
        bare = {host: NatsOwnerLine(connection) for host, connection in connections.items()}
        lines = recorded_owner_lines(bare, Journal(folder, say) if party.record else None)

        told = Told(lambda: _early_status(party.party, "owner", "starting", connections))

        async def align() -> None:
            done.append(await _align(folder, federation, party, storage, lines, connections, here, told, shown))

        async def serve(stop: asyncio.Event) -> None:
            keeping = [connection.keep() for connection in connections.values()]
            await together(stop, align(), report(folder, lambda: told.status()), *keeping)

        run(serve)
    if not done:
        raise RunFailed(f"{party.party}: stopped before all was aligned; the same command goes on")
    return done[0]


async def _align(
    folder: Path,
    federation: Federation,
    party: OwnerFile,
    storage: DiskStorage,
    lines: dict[str, OwnerLine],
    connections: dict[str, Connection],
    here: Here,
    told: Told,
    shown: Callable[[Progress], None] | None = None,
) -> Aligned:
    alignment = await here.work(partial(OwnerAlignment, folder, federation, party, storage))
    counts = {"messages_dropped": 0}

    def status() -> dict[str, Any]:
        if shown is not None:
            shown(alignment.progress)
        done, total = alignment.progress
        return {
            **_early_status(party.party, "owner", "aligning", connections),
            "aligned": done,
            "to_align": total,
            **counts,
        }

    told.status = status
    own = identity(folder, party.party, "owner", federation.name)
    return await alignment.run(own, lines, here, drop=Dropped(counts, say), log=say)


def _owner_files(folder: Path) -> tuple[Federation, OwnerFile, Ed25519PrivateKey]:
    federation = read_federation(folder)
    party = read_owner(folder, federation)
    check_client_keys(folder, party.party, federation.name)
    key = read_plan_key(key_path(folder, "plan"))
    if key.public_key().public_bytes_raw().hex() != federation.plan_key:
        raise UserError(f"{key_path(folder, 'plan')} is not the key whose public half federation.toml names")
    return federation, party, key


def _opened_owner(
    folder: Path, federation: Federation, party: OwnerFile, key: Ed25519PrivateKey, storage: DiskStorage, here: Here
) -> OwnerParty:
    """The owner on its labels."""
    labels, test = owner_labels(folder, federation, party)
    return OwnerParty(
        party.party,
        labels,
        test,
        party.head.settings(),
        federation.plan(secrets.token_hex(16), slot_count(folder, federation, party)),
        key,
        storage,
        collect_deadline_s=party.collect_s,
        now_ms=here.now_ms(),
        log=say,
    )


def _renew_host(folder: Path, broker: Broker, service: HostService) -> None:
    """Goes over to the guests and certificates that are in the folder now; what cannot be is said, and all stays."""
    try:
        federation = read_federation(folder)
        party = read_host(folder, federation).party
        check_client_keys(folder, party, federation.name)
        broker.reload(replace(broker.site, guests=tuple(federation.guests)))
    except (UserError, RunFailed) as error:
        say(f"federation.toml was not taken: {error}")
        return
    service.change_guests(list(federation.guests))
    say(f"federation.toml version {federation.version}: {', '.join(federation.guests) or 'no guests'}")
    planned = service.party.guests if service.party.signed is not None else federation.guests
    for guest in [guest for guest in federation.guests if guest not in planned]:
        say(f"{guest} is not in the plan of this run and takes part from the next one on")


async def _keep(broker: Broker) -> None:
    """Starts the broker again whenever it has died; ends once it cannot keep what guests send."""
    while True:
        broker.check_store()
        if not broker.alive:
            try:
                await asyncio.to_thread(broker.restart)
            except (UserError, RunFailed) as error:  # killed again, or its port taken: neither lasts for good
                say(f"{error}; it is started again")
        await asyncio.sleep(_BROKER_S)


def _guest_status(guest: GuestParty, lines: dict[str, Connection]) -> dict[str, Any]:
    return {
        "party": guest.name,
        "role": "guest",
        "state": guest.state,
        "epoch": guest.epoch,
        "epochs": guest.signed.plan.guest_epochs if guest.signed else 0,
        "loss": guest.loss,
        "restarts": guest.restarts,
        "connected": sum(line.client is not None for line in lines.values()),
        **guest.counts,
        **_traffic(lines.values()),
    }


def _host_status(host: HostParty, connection: Connection, now_ms: int) -> dict[str, Any]:
    status: dict[str, Any] = {"party": host.name, "role": "host", "state": host.state, "restarts": host.restarts}
    if host.signed is not None:
        plan = host.signed.plan
        ages = {name: (now_ms - g.arrived_ms) / 1000 if g.arrived_ms else None for name, g in host.guests.items()}
        status |= {
            "epoch": host.steps // plan.host_iterations,
            "epochs": plan.host_steps // plan.host_iterations,
            "loss": host.loss,
            "ages_s": ages,
        }
    return {**status, **host.counts, **_traffic([connection])}


def _owner_status(owner: OwnerParty, lines: dict[str, Connection]) -> dict[str, Any]:
    return {
        "party": owner.name,
        "role": "owner",
        "state": owner.state,
        "epoch": owner.epoch,
        "epochs": owner.epochs,
        "loss": owner.loss,
        "restarts": owner.restarts,
        "progress": _progress(owner),
        **owner.counts,
        **_traffic(lines.values()),
    }


def _progress(owner: OwnerParty) -> str:
    """How far guests and hosts are, by what hosts say."""
    plan, statuses = owner.plan, owner.statuses.values()
    seen = [max((s.guests[g.name].epoch for s in statuses if g.name in s.guests), default=0) for g in plan.guests]
    epoch = min(*seen, plan.guest_epochs)
    steps = min((status.steps for status in statuses), default=0)
    return f"guests in epoch {epoch} of {plan.guest_epochs}, hosts at step {steps} of {plan.host_steps}"


def _early_status(party: str, role: str, state: str, lines: dict[str, Connection]) -> dict[str, Any]:
    connected = sum(line.client is not None for line in lines.values())
    return {"party": party, "role": role, "state": state, "connected": connected, **_traffic(lines.values())}


def _traffic(connections: Iterable[Connection]) -> dict[str, int]:
    """Bytes of this process's messages."""
    passed = [connection.traffic for connection in connections]
    return {"bytes_sent": sum(one.sent for one in passed), "bytes_received": sum(one.received for one in passed)}
