"""Lines over NATS. Nothing a broker or network does is raised: what did not get through in time is None or False."""

import asyncio
import json
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from dvfl.federation.keys.credentials import client_options
from dvfl.federation.protocol.wire import MAX_MESSAGE
from dvfl.federation.transport.accounts import align_subject, encode_subject
from dvfl.federation.transport.line import REQUEST_S, Post, Traffic
from dvfl.federation.transport.streams import drop_other_streams, ensure_stream, stream_name

# Of every connection that a broker closes asyncio says the same, which helps nobody.
logging.getLogger("asyncio").addFilter(lambda record: "eof_received() has no effect" not in record.getMessage())

_TROUBLE = (NatsError, OSError, asyncio.TimeoutError, asyncio.InvalidStateError)
_CONNECT_S = 3  # for each step of it
_PATIENCE_S = 10.0  # for all of them
_RETRY_S = 0.5
_ANSWER_S = REQUEST_S - 0.5  # given up a little before, so that with all that is around it the deadline is kept
_LOOK_S = 0.1
_TELL_S = 15.0  # after which a broker that cannot be reached is worth a line in the log
WINDOW = 32  # messages under way without an acknowledgement
_FETCHED = 16  # messages read at a time, a few megabytes
_FETCH_S = 1.0
_AT_ONCE = 32  # answers to one subject under way


class Connection:
    """One party's connection to one broker, made again whenever it is lost."""

    def __init__(
        self,
        folder: Path,
        host: str,
        federation: str,
        address: str,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._host, self._address, self._log = host, address, log
        self._options = client_options(folder, host, federation)
        self._client: Client | None = None
        self._why = "no answer"  # it could not be reached the last time
        self._told = False
        self._passed = Traffic(0, 0)  # over connections that are closed
        self._served: dict[str, Callable[[Msg], Awaitable[None]]] = {}

    @property
    def client(self) -> Client | None:
        """The client, where it is connected just now."""
        return self._client if self._client is not None and self._client.is_connected else None

    @property
    def traffic(self) -> Traffic:
        """Through every loss of the connection."""
        return self._passed if self._client is None else _more(self._passed, self._client)

    async def keep(self) -> None:
        """Makes the connection, and again whenever it is lost. Runs until it is cancelled.

        Not left to nats-py: where a connection is taken and reset before TLS is spoken, it waits for good (2.16).
        """
        leaving: set[asyncio.Task[None]] = set()
        seen = time.monotonic()
        try:
            while True:
                client = Client()
                try:
                    with suppress(Exception):  # whatever comes from a broker or the network, the next attempt follows
                        await asyncio.wait_for(self._connect(client), _PATIENCE_S)
                        while client.is_connected:
                            await asyncio.sleep(_LOOK_S)
                finally:
                    if self._client is not None:
                        seen = time.monotonic()
                    self._passed = _more(self._passed, client)
                    self._client = None
                    leaving.add(asyncio.create_task(_leave(client)))
                leaving = {task for task in leaving if not task.done()}
                self._tell(time.monotonic() - seen)
                await asyncio.sleep(_RETRY_S)
        finally:
            await asyncio.gather(*leaving)

    def _tell(self, away_s: float) -> None:
        """Once for each time that the broker is away for long."""
        if away_s > _TELL_S and not self._told:
            self._told = True
            self._log(f"{self._host} is not reached at {self._address} ({self._why}); dvfl doctor says more")

    async def _connect(self, client: Client) -> None:
        async def note(error: Exception) -> None:
            number = error.errno if isinstance(error, ConnectionError) else None
            self._why = os.strerror(number) if number else str(error) or type(error).__name__

        await client.connect(
            f"tls://{self._address}",
            connect_timeout=_CONNECT_S,
            allow_reconnect=False,
            ping_interval=5,
            max_outstanding_pings=2,  # a line that is cut without a word is noticed
            error_cb=note,
            **self._options,
        )
        self._client = client
        if self._told:
            self._told = False
            self._log(f"{self._host} is reached at {self._address}")
        for subject, answer in list(self._served.items()):
            await client.subscribe(subject, cb=answer)

    async def serve(self, subject: str, answer: Callable[[Msg], Awaitable[None]]) -> None:
        """Answers requests from now on, through every loss of the connection."""
        self._served[subject] = answer
        if self._client is not None:
            with suppress(*_TROUBLE):  # lost just now: the next connection begins with it
                await self._client.subscribe(subject, cb=answer)

    async def request(self, subject: str, data: bytes, within_s: float = _ANSWER_S) -> bytes | None:
        """An answer in time, or None; that at once where nobody listens."""
        client = self.client
        if client is None:
            return None
        with suppress(*_TROUBLE):
            async with asyncio.timeout(within_s):  # sending, too, can wait for good
                return (await client.request(subject, data, timeout=within_s)).data
        return None


def _responding(answer: Callable[[bytes], Awaitable[bytes]]) -> Callable[[Msg], Awaitable[None]]:
    """Each message in a task of its own: nats-py gives a subscription the next one when this one is dealt with."""
    room, under_way = asyncio.Semaphore(_AT_ONCE), set[asyncio.Task[None]]()

    async def respond(message: Msg) -> None:
        with suppress(*_TROUBLE):
            await message.respond(await answer(message.data))

    def ended(task: asyncio.Task[None]) -> None:
        under_way.discard(task)
        room.release()
        if not task.cancelled():
            task.exception()  # who answers has told it already

    async def take(message: Msg) -> None:
        await room.acquire()
        task = asyncio.create_task(respond(message))
        under_way.add(task)
        task.add_done_callback(ended)

    return take


def _more(passed: Traffic, client: Client) -> Traffic:
    return Traffic(passed.sent + client.stats["out_bytes"], passed.received + client.stats["in_bytes"])


def _raise_if_cancelled() -> None:
    """Once a connection is closed, nats-py makes an error of a task's cancellation."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from None


async def _leave(client: Client) -> None:
    """Closing, too, can wait for good."""
    with suppress(Exception):
        await asyncio.wait_for(client.close(), _CONNECT_S)


class NatsGuestLine:
    """From a guest to one host. Messages are acknowledged by the broker once they are in the guest's stream."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._under_way: deque[asyncio.Task[bool]] = deque()

    @property
    def traffic(self) -> Traffic:
        return self._connection.traffic

    async def hello(self, data: bytes) -> bytes | None:
        return await self._connection.request("hello", data)

    async def push(self, data: bytes) -> bool:
        if self._connection.client is None:
            return False
        self._under_way.append(asyncio.create_task(self._pushed(data)))
        through = True
        while self._under_way and (len(self._under_way) >= WINDOW or self._under_way[0].done()):
            through = await self._under_way.popleft() and through
        return through

    async def flushed(self) -> bool:
        return all([await self._under_way.popleft() for _ in range(len(self._under_way))])

    async def serve(self, subject: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        await self._connection.serve(subject, _responding(answer))

    async def _pushed(self, data: bytes) -> bool:
        reply = await self._connection.request("push", data)
        if reply is None:
            return False
        try:
            return "seq" in json.loads(reply)
        except ValueError:
            return False


class NatsHostLine:
    """From a host to its own broker, where it has a stream for every guest."""

    def __init__(self, connection: Connection, stream_bytes: int) -> None:
        self._connection, self._stream_bytes = connection, stream_bytes
        self._reading: dict[str, tuple[Any, str, int]] = {}  # subscription, the stream's identity, the last number read

    @property
    def traffic(self) -> Traffic:
        return self._connection.traffic

    async def fetch(self, guest: str, stream: str, sequence: int) -> Post | None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await self._fetch(guest, stream, sequence)
        except _TROUBLE:
            _raise_if_cancelled()
            await self._close(guest)
            return None

    async def keep_only(self, guests: list[str]) -> bool:
        client = self._connection.client
        if client is None:
            return False
        try:
            async with asyncio.timeout(_ANSWER_S):
                await drop_other_streams(client.jetstream(timeout=_ANSWER_S), guests)
        except _TROUBLE:
            _raise_if_cancelled()
            return False
        return True

    async def serve(self, subject: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        await self._connection.serve(subject, _responding(answer))

    async def ask(self, guest: str, data: bytes, within_s: float) -> bytes | None:
        return await self._connection.request(encode_subject(guest), data, within_s)

    async def _fetch(self, guest: str, stream: str, sequence: int) -> Post | None:
        if self._connection.client is None:
            await self._close(guest)
            return None
        reading = self._reading.get(guest)
        if reading is None or reading[1:] != (stream, sequence):
            await self._close(guest)
            js = self._connection.client.jetstream(timeout=_ANSWER_S)
            identity = await ensure_stream(js, guest, self._stream_bytes, MAX_MESSAGE)
            end = (await js.stream_info(stream_name(guest))).state.last_seq
            if identity != stream or sequence > end:  # a new stream; or after a loss of power the end may be earlier
                return Post(identity, [], gap=identity == stream)
            reading = self._reading[guest] = await _subscribed(js, guest, sequence), stream, sequence
        subscription, identity, last = reading
        try:
            found = await subscription.fetch(_FETCHED, timeout=_FETCH_S)
        except TimeoutError:
            return Post(identity, [], gap=False)
        messages = [(message.metadata.sequence.stream, message.data) for message in found]
        if not messages:
            return Post(identity, [], gap=False)
        self._reading[guest] = subscription, identity, messages[-1][0]
        return Post(identity, messages, gap=messages[0][0] > last + 1)

    async def _close(self, guest: str) -> None:
        reading = self._reading.pop(guest, None)
        if reading is not None:
            with suppress(*_TROUBLE):
                await reading[0].unsubscribe()


async def _subscribed(js: JetStreamContext, guest: str, sequence: int) -> JetStreamContext.PullSubscription:
    """A reader of the guest's stream from that place on."""
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=sequence + 1,
        ack_policy=AckPolicy.NONE,  # acknowledged reading stops at a thousand messages under way
        inactive_threshold=60,
    )
    return await js.pull_subscribe("", stream=stream_name(guest), config=config)


class NatsOwnerLine:
    """From the owner to one host."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def tell(self, data: bytes) -> bytes | None:
        return await self._connection.request("tell", data)

    async def collect(self, data: bytes) -> bytes | None:
        return await self._connection.request("collect", data)

    async def predict(self, data: bytes, within_s: float) -> bytes | None:
        return await self._connection.request("predict", data, within_s)

    async def letter(self, guest: str, data: bytes) -> bytes | None:
        return await self._connection.request(align_subject(guest), data)
