"""A guest, host or owner as the process that `dvfl guest`, `dvfl host` and `dvfl owner` are."""

import asyncio
import secrets
import signal
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from dvfl.errors import RunFailed, UserError
from dvfl.federation.accounts import Site
from dvfl.federation.broker import Broker, check_version, find_server
from dvfl.federation.credentials import authority_path, certificate_path, check_certificate, key_path, read_plan_key
from dvfl.federation.guest import GuestParty
from dvfl.federation.guest_service import GuestService
from dvfl.federation.host import HostParty
from dvfl.federation.host_service import HostService
from dvfl.federation.labels import open_labels
from dvfl.federation.nats_line import Connection, NatsGuestLine, NatsHostLine, NatsOwnerLine
from dvfl.federation.owner import OwnerParty
from dvfl.federation.owner_service import OwnerService
from dvfl.federation.process import held, report, run, say
from dvfl.federation.results import result
from dvfl.federation.settings import Federation, read_federation, read_guest, read_host, read_owner
from dvfl.federation.storage import DiskStorage
from dvfl.federation.surroundings import Here
from dvfl.federation.table import open_table
from dvfl.federation.tasks import together
from dvfl.files import write_json, writing

RESULT = "result.json"
_BROKER_S = 0.2  # between two looks at the broker


def run_guest(folder: Path) -> None:
    """Runs until it is asked to leave."""
    federation = read_federation(folder)
    party = read_guest(folder, federation)
    _check_keys(folder, party.party, federation)
    data, entry, here = party.data, federation.guests[party.party], Here()
    with held(folder, party.party):
        storage = DiskStorage(folder / "state")
        saved = storage.load()
        schema = saved.values["schema"] if saved else None
        read = partial(open_table, id_column=data.id, slots=folder / data.slots, values=entry.values)
        table = read(folder / data.table, prepared=folder / "state" / "table", schema=schema)
        test = None
        if data.test_table is not None:
            prepared = folder / "state" / "test_table"
            test = read(folder / data.test_table, prepared=prepared, schema=table.schema)
        guest = GuestParty(
            party.party,
            table,
            test,
            storage,
            federation.key(),
            federation=federation.hash,
            now_ms=here.now_ms(),
            log=say,
            lineage=secrets.randbits(62),
        )
        lines = {host: Connection(folder, host, federation.name, at) for host, at in party.hosts.items()}

        async def serve(stop: asyncio.Event) -> None:
            service = GuestService(guest, {host: NatsGuestLine(line) for host, line in lines.items()}, here)
            keeping = (line.keep() for line in lines.values())
            await together(stop, service.run(stop), report(folder, lambda: _guest_status(guest, lines)), *keeping)

        run(serve)


def run_host(folder: Path) -> None:
    """Runs until it is asked to leave, and its broker with it; SIGHUP: takes a new federation.toml and certificates."""
    federation = read_federation(folder)
    party = read_host(folder, federation)
    _check_keys(folder, party.party, federation)
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
        broker = Broker(site, server)
        broker.start()
        try:
            address = site.url.removeprefix("tls://")
            connection = Connection(folder, party.party, federation.name, address)

            async def serve(stop: asyncio.Event) -> None:
                line = NatsHostLine(connection, party.broker.stream_megabytes << 20)
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
    federation = read_federation(folder)
    party = read_owner(folder, federation)
    _check_keys(folder, party.party, federation)
    key = read_plan_key(key_path(folder, "plan"))
    if key.public_key().public_bytes_raw().hex() != federation.plan_key:
        raise UserError(f"{key_path(folder, 'plan')} is not the key whose public half federation.toml names")
    data, here = party.data, Here()
    with held(folder, party.party):
        read = partial(
            open_labels, id_column=data.id, label_column=data.label, slots=folder / data.slots, task=data.task
        )
        labels = read(folder / data.labels)
        test = None if data.test_labels is None else read(folder / data.test_labels, like=labels)
        owner = OwnerParty(
            party.party,
            labels,
            test,
            party.head.settings(),
            federation.plan(secrets.token_hex(16), party.slots.training, party.slots.encode_only),
            key,
            DiskStorage(folder / "state"),
            collect_deadline_s=party.collect_s,
            now_ms=here.now_ms(),
            log=say,
        )
        lines = {host: Connection(folder, host, federation.name, at) for host, at in party.hosts.items()}

        async def serve(stop: asyncio.Event) -> None:
            def finished(owner: OwnerParty) -> None:
                if not owner.resumed_done or not (folder / RESULT).exists():
                    with writing(folder / RESULT):
                        write_json(folder / RESULT, result(owner, party.about, owner.seconds()))

            service = OwnerService(owner, {host: NatsOwnerLine(line) for host, line in lines.items()}, here, finished)
            keeping = (line.keep() for line in lines.values())
            await together(stop, service.run(stop), report(folder, lambda: _owner_status(owner, lines)), *keeping)

        run(serve)


def _renew_host(folder: Path, broker: Broker, service: HostService) -> None:
    """Goes over to the guests and certificates that are in the folder now; what cannot be is said, and all stays."""
    try:
        federation = read_federation(folder)
        party = read_host(folder, federation).party
        _check_keys(folder, party, federation)
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


def _check_keys(folder: Path, party: str, federation: Federation) -> None:
    check_certificate(
        certificate_path(folder, "client"),
        key_path(folder, "client"),
        authority_path(folder),
        party=party,
        federation=federation.name,
        usage="client",
        now=datetime.now(UTC),
    )


def _guest_status(guest: GuestParty, lines: dict[str, Connection]) -> dict[str, Any]:
    return {
        "party": guest.name,
        "role": "guest",
        "state": guest.state,
        "epoch": guest.epoch,
        "epochs": guest.signed.plan.guest_epochs if guest.signed else 0,
        "loss": guest.losses[-1] if guest.losses else None,
        "restarts": guest.restarts,
        "connected": sum(line.client is not None for line in lines.values()),
        **guest.counts,
        **_traffic(lines.values()),
    }


def _host_status(host: HostParty, connection: Connection, now_ms: int) -> dict[str, Any]:
    status: dict[str, Any] = {"party": host.name, "role": "host", "state": host.state, "restarts": host.restarts}
    if host.signed is not None:
        plan = host.signed.plan
        iterations = plan.host_steps // plan.host_epochs
        ages = {name: (now_ms - g.arrived_ms) / 1000 if g.arrived_ms else None for name, g in host.guests.items()}
        status |= {"epoch": host.steps // iterations, "epochs": plan.host_epochs, "loss": host.loss, "ages_s": ages}
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
        **owner.counts,
        **_traffic(lines.values()),
    }


def _traffic(connections: Iterable[Connection]) -> dict[str, int]:
    """Bytes of this process's messages."""
    passed = sum((connection.traffic for connection in connections), Counter[str]())
    return {name: passed[name] for name in ("bytes_sent", "bytes_received")}
