"""What the broker does not let anybody do, each tried against the real one."""

import asyncio
import contextlib
import itertools
import json
import ssl
import time
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig

from dvfl.federation.accounts import MAX_CONNECTIONS, MAX_PAYLOAD
from dvfl.federation.authority import Usage, make_authority
from dvfl.federation.credentials import (
    authority_path,
    certificate_path,
    client_options,
    key_path,
    write_authority,
    write_credentials,
)
from dvfl.federation.messages import Role
from dvfl.federation.streams import ensure_stream

if TYPE_CHECKING:
    from conftest import Brokered

KIB = 1 << 10
CAP, LARGEST = 256 * KIB, 32 * KIB  # of a stream, of a message in it
SECRET = b"encodings of guest-2"

# What would harm guest-2 if it reached the host's account.
DELETE, PURGE = "$JS.API.STREAM.DELETE.G-guest-2", "$JS.API.STREAM.PURGE.G-guest-2"
CONSUMER = "$JS.API.CONSUMER.CREATE.G-guest-2.spy"
HARM = [
    ("push.guest-2", b"forged"),
    ("hello.guest-2", b"forged"),
    (DELETE, b""),
    (PURGE, b"{}"),
    ("$JS.API.STREAM.MSG.DELETE.G-guest-2", b'{"seq": 1}'),
    ("$JS.API.STREAM.UPDATE.G-guest-2", b'{"name": "G-guest-2", "subjects": ["elsewhere"], "max_bytes": 1}'),
    ("$JS.API.STREAM.CREATE.spy", b'{"name": "spy", "sources": [{"name": "G-guest-2"}], "max_bytes": 1000}'),
    (
        CONSUMER,
        b'{"stream_name": "G-guest-2", "config": {"name": "spy", "deliver_subject": "spy", "ack_policy": "none"}}',
    ),
    ("$JS.API.CONSUMER.MSG.NEXT.G-guest-2.reader", b"1"),
    ("$JS.API.CONSUMER.DELETE.G-guest-2.reader", b""),
    ("$JS.API.STREAM.MSG.GET.G-guest-2", b'{"seq": 1}'),
    ("$JS.API.DIRECT.GET.G-guest-2", b'{"seq": 1}'),
    ("$JS.API.STREAM.SNAPSHOT.G-guest-2", b'{"deliver_subject": "spy"}'),
    ("$JS.API.STREAM.LIST", b""),
    ("$JS.API.ACCOUNT.PURGE.host-1", b""),
    ("$SYS.REQ.SERVER.PING.JSZ", b"{}"),
    ("$SYS.REQ.ACCOUNT.host-1.CONNZ", b"{}"),
]
OWN = {"guest-1": ("push", "hello"), "owner": ("tell", "collect")}  # what each may say


def run(attempt: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(attempt, 20))


@contextlib.asynccontextmanager
async def answering(federation: "Brokered", heard: list[Msg]) -> AsyncIterator[Client]:
    """The host, which answers every request with its own words and notes it; guest-2 has pushed something."""

    async def echo(message: Msg) -> None:
        heard.append(message)
        if message.reply and not message.subject.startswith("push."):
            await message.respond(message.data)

    async with federation.connected("host-1") as host, federation.connected("guest-2") as guest:
        for name in ("guest-1", "guest-2"):
            await ensure_stream(host.jetstream(), name, CAP, LARGEST)
        for subject in ("push.*", "hello.*", "owner.*"):
            await host.subscribe(subject, cb=echo)
        await federation.flushed(host)
        assert json.loads((await guest.request("push", SECRET, timeout=2)).data)["stream"] == "G-guest-2"
        while not heard:  # the broker's answer may be faster than the host
            await asyncio.sleep(0.01)
        heard.clear()
        yield host


@contextlib.asynccontextmanager
async def guarded(federation: "Brokered") -> AsyncIterator[tuple[Client, list[Msg]]]:
    """The host and what it hears during the block, which must not touch anything of guest-2."""
    heard: list[Msg] = []
    async with answering(federation, heard) as host:
        before = await _everything(host)
        yield host, heard
        assert await _everything(host) == before
        assert not [message.subject for message in heard if message.subject.endswith(".guest-2")]


async def _everything(host: Client) -> dict[str, Any]:
    """All that there is in the host's account, apart from how much guest-1 has pushed."""
    found = {}
    for info in await host.jetstream().streams_info():
        state = [] if info.config.name == "G-guest-1" else [info.state]
        found[info.config.name] = (info.config, info.created, info.state.consumer_count, *state)
    return found


async def settled(federation: "Brokered", client: Client, host: Client, heard: list[Msg], count: int) -> None:
    """Until the host has heard so many messages, and the broker has done what followed from them."""
    while len(heard) < count:
        await asyncio.sleep(0.01)
    await federation.flushed(host, client, host)
    await asyncio.sleep(0.1)  # requests to JetStream wait in a queue of the broker's
    assert len(heard) == count


# Writing, deleting and reading what is another's.


@pytest.mark.parametrize("party", OWN)
def test_no_subject_of_the_hosts_account_can_be_named_directly(brokered: "Brokered", party: str) -> None:
    others = [service for other, services in OWN.items() if other != party for service in services]
    subjects = ["owner.tell", "owner.collect", "push.guest-1", "hello.guest-1", *others]

    async def attempt() -> None:
        async with guarded(brokered) as (host, heard), brokered.connected(party) as client:
            for subject, data in [*HARM, *((subject, b"forged") for subject in subjects)]:
                await client.publish(subject, data)
                with contextlib.suppress(NoRespondersError, TimeoutError):
                    answer = (await client.request(subject, data, timeout=0.3)).data
                    assert "error" in json.loads(answer), subject
            await settled(brokered, client, host, heard, 0)

    run(attempt())


@pytest.mark.parametrize("party", OWN)
def test_no_subject_of_the_hosts_account_can_be_named_as_the_place_for_an_answer(
    brokered: "Brokered", party: str
) -> None:
    async def attempt() -> None:
        async with guarded(brokered) as (host, heard), brokered.connected(party) as client:
            for service, (subject, data) in itertools.product(OWN[party], HARM):
                await client.publish(service, data, reply=subject)  # the answer is the broker's, or the same words
            await settled(brokered, client, host, heard, len(OWN[party]) * len(HARM))

    run(attempt())


@pytest.mark.parametrize("header", ["Nats-Trace-Dest", "Nats-Schedule-Target", "Reply-To"])
def test_no_subject_of_the_hosts_account_can_be_named_in_a_header(brokered: "Brokered", header: str) -> None:
    async def attempt() -> None:
        async with guarded(brokered) as (host, heard), brokered.connected("guest-1") as client:
            for service, (subject, data) in itertools.product(OWN["guest-1"], HARM):
                headers = {header: subject, "Nats-Schedule": "@at 2020-01-01T00:00:00Z"}
                await client.publish(service, data, headers=headers)
            await settled(brokered, client, host, heard, len(OWN["guest-1"]) * len(HARM))

    run(attempt())


@pytest.mark.parametrize("party", OWN)
def test_nobody_hears_what_passes_between_a_guest_and_a_host(brokered: "Brokered", party: str) -> None:
    async def attempt() -> None:
        caught: list[Msg] = []
        read: list[Msg] = []

        async def catch(message: Msg) -> None:
            caught.append(message)

        async def read_one(message: Msg) -> None:
            read.append(message)

        async with answering(brokered, []) as host, brokered.connected(party) as spy:
            for subject in (">", "push.>", "*.guest-2", "hello.>", "_INBOX.>", "_R_.>", "$JS.>", "$SYS.>", "spy"):
                await spy.subscribe(subject, cb=catch)
            await brokered.flushed(spy)
            await host.jetstream().subscribe(
                "push.guest-2", stream="G-guest-2", cb=read_one, config=ConsumerConfig(ack_policy=AckPolicy.NONE)
            )
            async with brokered.connected("guest-2") as guest:
                for _ in range(5):
                    await guest.request("push", SECRET, timeout=2)
                    await guest.request("hello", SECRET, timeout=2)
            held = (await host.jetstream().stream_info("G-guest-2")).state.messages
            await settled(brokered, spy, host, read, held)
            assert held >= 5
        assert not caught

    run(attempt())


def test_a_guest_that_claims_to_be_another_is_who_its_certificate_says(brokered: "Brokered") -> None:
    async def attempt() -> None:
        claims = [
            {"user": "guest-2.practice.dvfl"},
            {"user": "host-1.practice.dvfl"},
            {"token": "guest-2.practice.dvfl"},
        ]
        async with guarded(brokered):
            for claim in claims:
                async with brokered.connected("guest-1", **claim) as client:
                    answer = await client.request("push", b"mine", timeout=2)
                    assert json.loads(answer.data)["stream"] == "G-guest-1"
            with pytest.raises(Exception, match="Authorization Violation"):
                async with brokered.connected("guest-1", user="guest-2.practice.dvfl", password="guessed"):
                    pass

    run(attempt())


def test_a_guest_cannot_empty_even_its_own_stream(brokered: "Brokered") -> None:
    async def attempt() -> None:
        async with guarded(brokered) as (host, _), brokered.connected("guest-1") as client:
            await client.request("push", b"first", timeout=2)
            before = (await host.jetstream().stream_info("G-guest-1")).state.messages
            for rollup in ("all", "sub"):
                answer = await client.request("push", b"last", headers={"Nats-Rollup": rollup}, timeout=2)
                assert b"rollup not permitted" in answer.data
            assert (await host.jetstream().stream_info("G-guest-1")).state.messages == before

    run(attempt())


# Too much.


def test_a_message_over_the_streams_cap_is_refused(brokered: "Brokered") -> None:
    async def attempt() -> None:
        async with guarded(brokered) as (host, _), brokered.connected("guest-1") as client:
            before = (await host.jetstream().stream_info("G-guest-1")).state.messages
            assert b"message size exceeds maximum" in (await client.request("push", bytes(LARGEST + 1), timeout=2)).data
            assert (await host.jetstream().stream_info("G-guest-1")).state.messages == before

    run(attempt())


def test_who_sends_more_than_the_brokers_cap_is_cut_off(brokered: "Brokered") -> None:
    async def attempt() -> None:
        gone = asyncio.Event()

        async def closed() -> None:
            gone.set()

        async with guarded(brokered) as (_, heard), brokered.connected("guest-1", closed_cb=closed) as client:
            client._max_payload = 100 * MAX_PAYLOAD  # a client that does not keep to what the broker told it
            await client.publish("hello", bytes(MAX_PAYLOAD + 1))
            await asyncio.wait_for(gone.wait(), 5)
            assert not heard

    run(attempt())
    assert (
        "Maximum Payload Violation" in brokered.broker.log.read_text()
        or "maximum payload" in brokered.broker.log.read_text()
    )


def test_a_flood_pushes_out_nothing_but_its_own_messages(brokered: "Brokered") -> None:
    async def attempt() -> None:
        async with guarded(brokered) as (host, _), brokered.connected("guest-1") as client:
            for _ in range(40):  # five times the cap
                assert "error" not in json.loads((await client.request("push", bytes(LARGEST - 1000), timeout=2)).data)
            state = (await host.jetstream().stream_info("G-guest-1")).state
            assert state.bytes <= CAP
            assert state.first_seq > 1

    run(attempt())


def test_one_party_cannot_take_all_connections(brokered: "Brokered") -> None:
    async def attempt() -> None:
        async with contextlib.AsyncExitStack() as stack:
            with pytest.raises(Exception, match="maximum account active connections exceeded"):
                for _ in range(MAX_CONNECTIONS + 1):
                    await stack.enter_async_context(brokered.connected("guest-1"))
            await stack.enter_async_context(brokered.connected("guest-2"))

    run(attempt())


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
