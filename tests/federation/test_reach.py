"""What a party finds at hosts: real brokers, right and wrong ones."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clinics import NAME, Clinics

import dvfl.federation.local.connectivity
from dvfl.federation.local.connectivity import Finding, Visitor, look_at_hosts, look_at_own_broker
from dvfl.federation.protocol.messages import Role
from dvfl.federation.transport.accounts import Site
from dvfl.federation.transport.broker import Broker, find_server


@pytest.fixture(scope="module")
def clinics(tmp_path_factory: pytest.TempPathFactory) -> Clinics:
    made = Clinics(tmp_path_factory.mktemp("clinics")).create()
    for party in ("guest-1", "guest-2", "host-1", "host-2"):
        made.enter(party)
    return made


@pytest.fixture(scope="module")
def broker(clinics: Clinics) -> Iterator[Broker]:
    """That of host-1, which knows guest-1 alone; no host is behind it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = Broker(site(clinics, f"127.0.0.1:{port}"), find_server(None))
    made.start()
    yield made
    made.stop()


def site(clinics: Clinics, listen: str) -> Site:
    return Site(NAME, "host-1", ("guest-1",), "owner", clinics.folder("host-1"), listen)


def visitor(clinics: Clinics, party: str, role: Role) -> Visitor:
    return Visitor(clinics.owner if role == "owner" else clinics.folder(party), party, role, NAME)


def look(clinics: Clinics, address: str, party: str = "guest-1", role: Role = "guest", host: str = "host-1") -> Finding:
    """What is wrong first, or the last that is right."""
    findings = asyncio.run(look_at_hosts(visitor(clinics, party, role), {host: address}))
    return next((finding for finding in findings if not finding.well), findings[-1])


def at(broker: Broker) -> str:
    return broker.site.url.removeprefix("tls://")


@pytest.mark.parametrize(("party", "role"), [("guest-1", "guest"), ("owner", "owner")])
def test_a_broker_without_its_host_is_reached_and_keeps_time_and_does_not_answer(
    clinics: Clinics, broker: Broker, party: str, role: Role
) -> None:
    findings = asyncio.run(look_at_hosts(visitor(clinics, party, role), {"host-1": at(broker)}))
    assert [finding.well for finding in findings] == [True, True, False]
    assert findings[1].says == "0.0 s apart"
    assert "the host behind it does not answer" in findings[2].says


def test_a_host_finds_its_own_broker(clinics: Clinics, broker: Broker) -> None:
    findings = asyncio.run(look_at_own_broker(visitor(clinics, "host-1", "host"), broker.site))
    assert [finding.well for finding in findings] == [True, True, False]


def test_a_host_that_does_not_run_finds_its_port_free(clinics: Clinics, free_port: Callable[[], int]) -> None:
    own = site(clinics, f"127.0.0.1:{free_port()}")
    (finding,) = asyncio.run(look_at_own_broker(visitor(clinics, "host-1", "host"), own))
    assert finding.well and "is free" in finding.says


def test_clocks_that_are_apart(clinics: Clinics, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time
    monkeypatch.setattr(dvfl.federation.local.connectivity.time, "time", lambda: now() + 300)
    assert look(clinics, at(broker)).says == "300 s apart from this machine's; keep both by NTP"


def test_a_broker_that_has_not_heard_of_the_party(clinics: Clinics, broker: Broker) -> None:
    finding = look(clinics, at(broker), "guest-2")
    assert "the broker does not know guest-2; host-1 takes the newest federation.toml" in finding.says


@pytest.mark.parametrize(("broken", "says"), [(3, "does not know guest-2"), (4, "no TLS (ConnectionResetError)")])
def test_a_broker_that_reloads_breaks_off_some_connections(
    clinics: Clinics, broker: Broker, broken: int, says: str
) -> None:
    async def story() -> Finding:
        left = broken

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                return writer.transport.abort()
            inside = await asyncio.open_connection(*broker.site.address())
            await asyncio.gather(copied(reader, inside[1]), copied(inside[0], writer))

        async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            (finding,) = await look_at_hosts(visitor(clinics, "guest-2", "guest"), {"host-1": address})
        return finding

    assert says in asyncio.run(story()).says


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


def test_the_broker_of_another_host(clinics: Clinics, broker: Broker) -> None:
    assert "who answers is not host-2 of this federation" in look(clinics, at(broker), host="host-2").says


def test_the_broker_of_another_federation(clinics: Clinics, broker: Broker, tmp_path: Path) -> None:
    others = Clinics(tmp_path).create()
    others.enter("guest-1")
    assert "who answers is not host-1 of this federation" in look(others, at(broker)).says


def test_a_port_at_which_nobody_listens(clinics: Clinics, free_port: Callable[[], int]) -> None:
    assert "nobody listens there; start dvfl host" in look(clinics, f"127.0.0.1:{free_port()}").says


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_another_program_at_the_port(clinics: Clinics, answer: bytes) -> None:
    async def story() -> Finding:
        async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(respond, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        (finding,) = await look_at_hosts(visitor(clinics, "guest-1", "guest"), {"host-1": address})
        server.close()
        return finding

    finding = asyncio.run(story())
    assert not finding.well and "mend [hosts] in party.toml" in finding.says


def test_a_firewall_that_says_nothing(clinics: Clinics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dvfl.federation.local.connectivity, "_CONNECT_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        finding = look(clinics, f"127.0.0.1:{silent.getsockname()[1]}")
    assert "let TCP through to that port" in finding.says


@pytest.mark.parametrize(("address", "says"), [("host.invalid:4222", "no such name"), ("host", "is no address")])
def test_an_address_that_leads_nowhere(clinics: Clinics, address: str, says: str) -> None:
    assert says in look(clinics, address).says


def test_another_program_has_the_port_of_a_host(clinics: Clinics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dvfl.federation.local.connectivity, "_CONNECT_S", 0.3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        own = site(clinics, f"127.0.0.1:{other.getsockname()[1]}")
        (finding,) = asyncio.run(look_at_own_broker(visitor(clinics, "host-1", "host"), own))
    assert not finding.well and "is taken, not by this host's broker" in finding.says
