"""What the broker does not let anybody do, each tried against the real one."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig

from dvfl.federation.transport.accounts import MAX_CONNECTIONS, MAX_PAYLOAD
from dvfl.federation.transport.streams import ensure_stream

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
OWN = {"guest-1": ("push", "hello"), "owner": ("tell", "collect", "predict")}  # what each may say


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
    subjects = ["owner.tell", "owner.collect", "owner.predict", "push.guest-1", "hello.guest-1", *others]

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


# Owner and guest, past the host.


@pytest.mark.parametrize(("service", "asker"), [("align", "owner"), ("encode", "host-1")])
def test_a_guest_is_reached_by_one_party_on_each_of_its_subjects(
    brokered: "Brokered", service: str, asker: str
) -> None:
    heard: list[Msg] = []

    async def answer(message: Msg) -> None:
        heard.append(message)
        await message.respond(b"of guest-2")

    async def attempt() -> None:
        async with brokered.connected("guest-2") as guest, brokered.connected(asker) as friend:
            await guest.subscribe(service, cb=answer)
            await brokered.flushed(guest)
            assert (await friend.request(f"{service}.guest-2", b"asked", timeout=2)).data == b"of guest-2"
            for party in {"guest-1", "host-1", "owner"} - {asker}:
                async with brokered.connected(party) as client:
                    for subject in (service, f"{service}.guest-2", f"guest-2.{service}"):
                        with pytest.raises((NoRespondersError, TimeoutError)):
                            await client.request(subject, b"forged", timeout=0.3)
            await brokered.flushed(guest)
        assert [message.data for message in heard] == [b"asked"]

    run(attempt())


def test_a_guest_that_is_gone_is_known_to_be_at_once(brokered: "Brokered") -> None:
    async def attempt() -> None:
        async with brokered.connected("host-1") as host:
            with pytest.raises(NoRespondersError):
                await host.request("encode.guest-2", b"asked", timeout=5)

    run(attempt())


def test_the_owner_cannot_have_a_guests_answer_go_elsewhere(brokered: "Brokered") -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"of guest-1")

    async def attempt() -> None:
        async with guarded(brokered) as (host, heard), brokered.connected("guest-1") as guest:
            await guest.subscribe("align", cb=answer)
            await brokered.flushed(guest)
            async with brokered.connected("owner") as owner:
                for subject in ("push.guest-2", "hello.guest-2", "push", "hello", DELETE, PURGE):
                    await owner.publish("align.guest-1", b"asked", reply=subject)
                await settled(brokered, owner, host, heard, 0)

    run(attempt())


@pytest.mark.parametrize(("service", "asker"), [("align", "owner"), ("encode", "host-1")])
def test_nobody_hears_what_passes_between_a_guest_and_who_asks_it(
    brokered: "Brokered", service: str, asker: str
) -> None:
    caught: list[Msg] = []

    async def catch(message: Msg) -> None:
        caught.append(message)

    async def answer(message: Msg) -> None:
        await message.respond(b"answered")

    async def attempt() -> None:
        async with brokered.connected("guest-1") as spy, brokered.connected("guest-2") as guest:
            for subject in (">", f"{service}.>", "_INBOX.>", "_R_.>"):
                await spy.subscribe(subject, cb=catch)
            await guest.subscribe(service, cb=answer)
            await brokered.flushed(spy, guest)
            async with brokered.connected(asker) as friend:
                for _ in range(5):
                    await friend.request(f"{service}.guest-2", SECRET, timeout=2)
            await brokered.flushed(spy)
        assert not caught

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
