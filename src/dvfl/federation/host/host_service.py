"""A host at work: reads guests' streams, answers guests and owner, and trains when there is something to train on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from dvfl.errors import RunFailed
from dvfl.federation.host.host import HostParty
from dvfl.federation.host.host_answers import HostAnswers
from dvfl.federation.party.runtime import Surroundings, awaited
from dvfl.federation.party.tasks import end, together
from dvfl.federation.protocol.wire import BadMessage, Collect, Hello, Message, Refused, Status, Tell, decode, encode
from dvfl.federation.transport.accounts import COLLECT, TELL
from dvfl.federation.transport.line import HostLine

Asked = TypeVar("Asked", Hello, Tell, Collect)

_SAVE_S = 10.0  # between two checkpoints
_STEPS = 16  # at a time, so that nobody waits long for an answer
_IDLE_S = 0.05
_LOOK_S = 1.0


class HostService:
    """Runs one host until it is stopped."""

    def __init__(self, party: HostParty, guests: list[str], line: HostLine, here: Surroundings) -> None:
        self.party, self._guests, self._line, self._here = party, guests, line, here
        self._changed = asyncio.Event()  # other guests than before
        self._answered: set[str] = set()
        self._lock = asyncio.Lock()  # the party does one thing at a time
        self._failures: asyncio.Queue[RunFailed] = asyncio.Queue()  # in answers, where no line would raise them
        self._saved_ms = here.now_ms()
        self._answers = HostAnswers(party, line, here)

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, or a task fails; then saves and leaves."""
        await self._line.serve(TELL, self._answering("the owner", Tell, self._tell))
        await self._line.serve(COLLECT, self._answering("the owner", Collect, self.party.collect))
        await self._answers.serve()
        answering = self._answers.watch(), self._answers.learn_usual()
        await together(stop, self._read_all(), self._forget_others(), self._train(), *answering, self._fail())
        self.party.save()
        self.party.close()

    def change_guests(self, guests: list[str]) -> None:
        """Goes over to other guests; those that the run's plan does not name are told so and wait for the next."""
        self._guests = guests
        self._changed.set()

    def _answering(
        self, sender: str, kind: type[Asked], answer: Callable[[Asked], Message]
    ) -> Callable[[bytes], Awaitable[bytes]]:
        async def answering(data: bytes) -> bytes:
            async with self._lock:
                try:
                    return encode(answer(decode(data, kind)))
                except BadMessage as error:
                    self.party.drop(sender, error)
                    return encode(Refused(str(error)[:200]))
                except RunFailed as error:
                    self._failures.put_nowait(error)
                    raise

        return answering

    async def _fail(self) -> None:
        raise await self._failures.get()

    def _hello(self, guest: str, message: Hello) -> Message:
        return self.party.hello(guest, message)

    def _tell(self, message: Tell) -> Message:
        answer = self.party.tell(message, now_ms=self._here.now_ms())
        if not isinstance(answer, Status):
            return answer
        passed, vouched_s = self._line.traffic, self._answers.vouched_s()
        return replace(answer, bytes_sent=passed.sent, bytes_received=passed.received, vouched_s=vouched_s)

    async def _read_all(self) -> None:
        """Answers and reads every guest, those that come later too; who was taken out is read no more."""
        readers: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                self._changed.clear()
                for guest in [guest for guest in self._guests if guest not in readers]:
                    if guest not in self._answered:
                        self._answered.add(guest)
                        answering = self._answering(guest, Hello, partial(self._hello, guest))
                        await self._line.serve(f"hello.{guest}", answering)
                    readers[guest] = asyncio.create_task(self._read(guest))
                for guest in readers.keys() - set(self._guests):
                    await end([readers.pop(guest)])
                changed = asyncio.create_task(self._changed.wait())
                try:
                    ended, _ = await asyncio.wait([changed, *readers.values()], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                for task in ended:
                    await task
        finally:
            await end(readers.values())

    async def _read(self, guest: str) -> None:
        """Takes what comes from one guest's stream, from where the checkpoint says."""
        while True:
            stream, sequence = self.party.place(guest)
            post = await awaited(self.party, self._here, self._line.fetch(guest, stream, sequence))
            if self.party.signed is None:
                await asyncio.sleep(_LOOK_S)
                continue
            if post is None:
                await asyncio.sleep(_IDLE_S)
                continue
            async with self._lock:
                if post.stream != stream or post.gap:
                    self.party.lost(guest, post.stream)
                for number, data in post.messages:
                    self.party.write(guest, data, post.stream, number, now_ms=self._here.now_ms())

    async def _forget_others(self) -> None:
        """Has what guests pushed deleted once they are in the federation no more."""
        kept: list[str] | None = None
        while True:
            guests = self._guests
            if guests != kept and await self._line.keep_only(guests):
                kept = guests
            await asyncio.sleep(_LOOK_S)

    async def _train(self) -> None:
        while True:
            async with self._lock:
                count = min(_STEPS, self.party.allowed(now_ms=self._here.now_ms()))
                if count:
                    await self._here.work(partial(self.party.train, count))
                self.party.settle(now_ms=self._here.now_ms())
                if self._here.now_ms() - self._saved_ms >= 1000 * _SAVE_S:
                    await self._here.work(self.party.save)
                    self._saved_ms = self._here.now_ms()
            await asyncio.sleep(0 if count else _IDLE_S)
