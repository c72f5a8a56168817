"""Who is not what it seems: certificates that brokers refuse, and brokers that parties leave, all real ones."""

import asyncio
import ssl
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nats.aio.client import Client

from dvfl.federation.keys.authority import Usage, make_authority
from dvfl.federation.keys.credentials import (
    authority_path,
    certificate_path,
    client_options,
    key_path,
    write_authority,
    write_credentials,
)
from dvfl.federation.protocol.messages import Role

if TYPE_CHECKING:
    from conftest import Brokered


def run(attempt: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(attempt, 20))


# Certificates.


def logged(federation: "Brokered", before: int, words: str) -> bool:
    """Whether the broker writes these words into its log, after the first `before` bytes, within two seconds."""
    deadline = time.monotonic() + 2
    while words.encode() not in federation.broker.log.read_bytes()[before:]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def turned_away(federation: "Brokered", because: str, folder: Path, **options: Any) -> None:
    """Nobody gets in with the keys in `folder`, and the broker knows why."""

    async def attempt() -> None:
        with pytest.raises((Exception, asyncio.CancelledError)):
            async with federation.connected("host-1", **client_options(folder, "host-1", "practice") | options):
                pass

    before = federation.broker.log.stat().st_size
    run(attempt())
    assert logged(federation, before, because)


def bare_context(brokered: "Brokered") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority_path(brokered.folder("guest-1")))
    return context


def test_without_a_certificate_nobody_gets_in(brokered: "Brokered") -> None:
    turned_away(brokered, "client didn't provide a certificate", brokered.folder("guest-1"), tls=bare_context(brokered))


def test_a_server_certificate_is_none_for_a_client(brokered: "Brokered") -> None:
    host, context = brokered.folder("host-1"), bare_context(brokered)
    context.load_cert_chain(certificate_path(host, "server"), key_path(host, "server"))
    turned_away(brokered, "incompatible key usage", host, tls=context)


@pytest.mark.parametrize("mine, theirs", [("guest-1", "guest-2"), ("guest-2", "guest-1"), ("guest-1", "host-1")])
def test_a_certificate_is_worth_nothing_without_its_key(brokered: "Brokered", mine: str, theirs: str) -> None:
    certificate, key = certificate_path(brokered.folder(theirs), "client"), key_path(brokered.folder(mine), "client")
    with pytest.raises(ssl.SSLError, match=r"(?i)key.values.mismatch"):
        bare_context(brokered).load_cert_chain(certificate, key)


def test_an_expired_certificate_is_refused(brokered: "Brokered", tmp_path: Path) -> None:
    past = datetime.now(UTC) - timedelta(days=10)
    write_credentials(
        tmp_path, brokered.authority, party="guest-1", role="guest", federation="practice", days=9, now=past
    )
    turned_away(brokered, "expired", tmp_path)


def test_a_certificate_that_is_not_valid_yet_is_refused(brokered: "Brokered", tmp_path: Path) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    write_credentials(
        tmp_path, brokered.authority, party="guest-1", role="guest", federation="practice", days=9, now=later
    )
    turned_away(brokered, "not yet valid", tmp_path)


def test_the_same_name_from_another_authority_is_refused(brokered: "Brokered", tmp_path: Path) -> None:
    now = datetime.now(UTC)
    other = make_authority("practice", now)
    write_credentials(tmp_path, other, party="guest-1", role="guest", federation="practice", days=9, now=now)
    write_authority(tmp_path, brokered.authority)  # so that at least the client trusts the broker
    turned_away(brokered, "failed to verify certificate", tmp_path)


@pytest.mark.parametrize(("party", "role"), [("guest-3", "guest"), ("host-2", "host")])
def test_a_party_of_the_federation_that_has_no_business_here_is_refused(
    brokered: "Brokered", tmp_path: Path, party: str, role: Role
) -> None:
    now = datetime.now(UTC)
    write_credentials(tmp_path, brokered.authority, party=party, role=role, federation="practice", days=9, now=now)
    turned_away(brokered, "authentication error", tmp_path)


# Brokers that are not what they seem.


def pretend(federation: "Brokered", folder: Path, usage: Usage, complaint: str) -> None:
    """The broker runs with a certificate that is not the host's server certificate; a guest sees it and leaves."""
    host = federation.folder("host-1")
    certificate_path(host, "server").write_bytes(certificate_path(folder, usage).read_bytes())
    key_path(host, "server").write_bytes(key_path(folder, usage).read_bytes())
    federation.broker.start()

    async def attempt() -> None:
        with pytest.raises(ssl.SSLCertVerificationError, match=complaint):
            async with federation.connected("guest-1"):
                pass

    run(attempt())


def test_the_broker_of_another_host_is_left(own_federation: "Brokered") -> None:
    pretend(own_federation, own_federation.admit("host-2", "host"), "server", "Hostname mismatch")


def test_a_client_certificate_is_none_for_a_broker(own_federation: "Brokered") -> None:
    pretend(own_federation, own_federation.folder("host-1"), "client", "unsuitable certificate purpose")


def test_a_broker_of_another_authority_is_left(own_federation: "Brokered", tmp_path: Path) -> None:
    now = datetime.now(UTC)
    other = make_authority("practice", now)
    write_credentials(tmp_path / "fake", other, party="host-1", role="host", federation="practice", days=9, now=now)
    pretend(own_federation, tmp_path / "fake", "server", "certificate verify failed")


def test_a_broker_that_speaks_plain_text_is_told_nothing(brokered: "Brokered") -> None:
    async def attempt() -> None:
        told = b""

        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal told
            writer.write(
                b'INFO {"server_id": "x", "version": "2.15.1", "max_payload": 1048576, "tls_required": false}\r\n'
            )
            told = await reader.read(4096)
            writer.close()

        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            client = Client()
            options = client_options(brokered.folder("guest-1"), "host-1", "practice")
            with pytest.raises(OSError):
                await client.connect(f"tls://127.0.0.1:{port}", allow_reconnect=False, connect_timeout=2, **options)
        assert b"CONNECT" not in told

    run(attempt())
