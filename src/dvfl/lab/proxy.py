"""A link that can be made to fail: a TCP proxy that cuts, delays, or takes connections and forwards nothing."""

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Literal

Way = Literal["cut", "delay", "half-open"]

_PIECE = 1 << 16  # bytes
_WINDOW = 256  # pieces of one direction on their way; more wait at the sender
_RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: closing drops what is unsent and resets the connection


class Proxy:
    """Forwards connections from a port of its own to one address, until it is told to fail.

    Its port stays its own while it refuses: whoever dials it then reaches nobody else.
    """

    def __init__(self, address: str) -> None:
        self._target = _taken_apart(address)
        self.heard = 0.0  # the loop's clock when bytes from the target were last passed on
        self._delay_s = 0.0
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: dict[asyncio.Task[None], set[asyncio.StreamWriter]] = {}
        self._server: asyncio.Server | None = None
        self._place = socket.socket()  # bound, never listening
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._place.bind(("127.0.0.1", 0))

    @property
    def address(self) -> str:
        """Where it listens."""
        return "{}:{}".format(*self._place.getsockname())

    @property
    def connections(self) -> int:
        """How many it holds."""
        return len(self._open)

    async def start(self) -> None:
        """Takes connections."""
        if self._server is None:
            self._server = await asyncio.start_server(self._take, *self._place.getsockname(), reuse_port=True)

    async def fail(self, way: Way, delay_s: float = 0.0) -> None:
        """From now on. cut: resets all, refuses new ones. delay: every byte later. half-open: nothing gets through."""
        await self.mend()
        if way == "cut":
            self._refuse()
            self._reset()
        elif way == "delay":
            self._delay_s = delay_s
        else:
            self._flowing.clear()

    async def mend(self) -> None:
        """Forwards again; what was held back in connections that are still there comes late, but it comes."""
        self._delay_s = 0.0
        self._flowing.set()
        await self.start()

    async def close(self) -> None:
        """Ends all connections and gives the port back."""
        self._refuse()
        tasks = list(self._open)
        self._reset()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._place.close()

    def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _reset(self) -> None:
        for task, ends in self._open.items():
            for end in ends:
                _abort(end)
            task.cancel()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Notes a connection at once, so that a cut in the next moment finds it."""
        ends = {writer}
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer, ends))
        self._open[task] = ends
        task.add_done_callback(self._open.pop)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ends: set[asyncio.StreamWriter]
    ) -> None:
        try:
            await self._flowing.wait()
            there, back = await asyncio.open_connection(*self._target)
            ends.add(back)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(reader, back, heard=False))
                both.create_task(self._carry(there, writer, heard=True))
            for end in ends:
                end.close()  # after what is still to be sent
        except* OSError:
            for end in ends:  # one is gone, so the other goes too
                _abort(end)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, heard: bool) -> None:
        """One direction. Reading and writing are apart, so that a delay is a latency and no brake."""
        loop = asyncio.get_running_loop()
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_WINDOW)

        async def take() -> None:
            data = b"more"
            while data:
                data = await reader.read(_PIECE)
                await on_the_way.put((loop.time(), data))

        async def give() -> None:
            while True:
                came, data = await on_the_way.get()
                await self._flowing.wait()
                await asyncio.sleep(came + self._delay_s - loop.time())
                await self._flowing.wait()
                if not data:
                    break
                writer.write(data)
                await writer.drain()
                if heard:
                    self.heard = loop.time()
            with suppress(OSError):
                writer.write_eof()

        async with asyncio.TaskGroup() as both:
            both.create_task(take())
            both.create_task(give())


def _taken_apart(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _abort(end: asyncio.StreamWriter) -> None:
    """Resets a connection; the other side is told at once, and nothing more reaches it."""
    connection = end.get_extra_info("socket")
    if connection is not None and not end.transport.is_closing():
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.transport.abort()
