"""A relay on the line between a guest and a broker, which keeps in the clear every byte that passes it."""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dvfl.federation.keys.authority import dns_name
from dvfl.federation.keys.credentials import authority_path, certificate_path, client_context, key_path
from dvfl.federation.protocol.wire import Message
from dvfl.federation.transport.accounts import split_address

_CARRYING = {"MSG", "HMSG", "PUB", "HPUB"}  # lines that a payload follows
_FREE = {"INFO", "CONNECT", "-ERR"}  # lines of one text
_END = b"\r\n"


class Frame(NamedTuple):
    """One line of NATS's protocol, and what came with it."""

    words: list[str]
    headers: bytes
    payload: bytes

    @property
    def kind(self) -> str:
        return self.words[0]


@dataclass
class Recorded:
    """One connection of a guest, both ways."""

    to_guest: bytearray = field(default_factory=bytearray)
    from_guest: bytearray = field(default_factory=bytearray)


class Relay:
    """Stands between one guest and a broker: to the guest with the host's certificate, to the broker with the guest's.

    Only a test that made all keys can have it: TLS does not let anybody else in between.
    """

    def __init__(self, guest: Path, host: Path, federation: str, address: str) -> None:
        target = split_address(address)
        assert target is not None
        self._target, self._name = target, dns_name(host.name, federation)
        self._to_broker, self._to_guest = client_context(guest), _server_context(host)
        self.connections: list[Recorded] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Takes connections; the address where."""
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0, ssl=self._to_guest)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return f"127.0.0.1:{self.port}"

    async def close(self) -> None:
        """Takes no more of them, and waits for the end of those that are left."""
        assert self._server is not None
        self._server.close()
        await asyncio.gather(*self._tasks)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # the broker may not be there yet
            there, back = await asyncio.open_connection(*self._target, ssl=self._to_broker, server_hostname=self._name)
            kept = Recorded()
            self.connections.append(kept)
            await asyncio.gather(_carry(reader, back, kept.from_guest), _carry(there, writer, kept.to_guest))
        writer.close()


def frames(stream: bytes | bytearray) -> list[Frame]:
    """All that a stream of NATS's protocol says, to its last byte; ValueError where it breaks off or is none."""
    found, at = [], 0
    while at < len(stream):
        end = stream.index(_END, at)
        kind, _, rest = stream[at:end].decode().partition(" ")
        words = [kind, *([rest] if kind in _FREE else rest.split())]
        at, body, head = end + len(_END), b"", 0
        if kind in _CARRYING:
            head, size = int(words[-2]) if kind.startswith("H") else 0, int(words[-1])
            body = bytes(stream[at : at + size])
            if stream[at + size : at + size + len(_END)] != _END:
                raise ValueError(f"{' '.join(words)} breaks off")
            at += size + len(_END)
        found.append(Frame(words, body[:head], body[head:]))
    return found


def arrays_in(message: Message) -> list[str]:
    """The fields of a message that are arrays."""
    return [name for name in message.__dataclass_fields__ if hasattr(getattr(message, name), "dtype")]


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    """One direction; bytes are kept before they are passed on, and the end is passed on too."""
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            kept += data
            writer.write(data)
            await writer.drain()
    writer.close()  # of TLS, both directions: the other one ends with it


def _server_context(host: Path) -> ssl.SSLContext:
    """TLS as the host's broker speaks it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority_path(host))
    context.load_cert_chain(certificate_path(host, "server"), key_path(host, "server"))
    return context
