"""The owner at work: tells hosts the plan, watches, collects, trains its head, and writes the result."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from dvfl.federation.owner.owner import OwnerParty
from dvfl.federation.party.runtime import Surroundings, awaited
from dvfl.federation.party.tasks import together
from dvfl.federation.protocol.wire import BadMessage, Chunk, Refused, Status, decode, encode
from dvfl.federation.transport.line import OwnerLine

_TELL_S = 1.0  # between two tellings of one host


class OwnerService:
    """Runs the owner until it is stopped; `finished` is called once, when its head is trained."""

    def __init__(
        self,
        party: OwnerParty,
        lines: Mapping[str, OwnerLine],
        here: Surroundings,
        finished: Callable[[OwnerParty], None],
    ) -> None:
        self.party, self._lines, self._here, self._finished = party, lines, here, finished
        self._lock = asyncio.Lock()  # the party does one thing at a time

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, or a task fails; then saves and leaves."""
        await together(stop, *(self._talk(host) for host in self._lines), self._decide())
        self.party.save()

    async def _talk(self, host: str) -> None:
        """Tells a host the plan again and again, and collects from it when it is time."""
        while True:
            async with self._lock:
                data = encode(self.party.tell())
            reply = await awaited(self.party, self._here, self._lines[host].tell(data))
            async with self._lock:
                answer = self._read(host, reply, Status)
                if isinstance(answer, Status | Refused):
                    self.party.told(host, answer)
            while reply is not None and await self._collect(host):
                pass
            await asyncio.sleep(_TELL_S)

    async def _collect(self, host: str) -> bool:
        """Asks for one chunk; whether it came."""
        async with self._lock:
            wanted = self.party.wanted(host)
        if wanted is None:
            return False
        reply = await awaited(self.party, self._here, self._lines[host].collect(encode(wanted)))
        async with self._lock:
            answer = self._read(host, reply, Chunk)
            if isinstance(answer, Chunk | Refused):
                self.party.took(host, answer)
            return isinstance(answer, Chunk)

    async def _decide(self) -> None:
        reported = False
        while True:
            async with self._lock:
                self.party.settle(now_ms=self._here.now_ms())
                training = self.party.state == "training"
                if training:
                    await self._here.work(partial(self.party.train, now_ms=self._here.now_ms()))
                    await self._here.work(self.party.save)
                elif self.party.state == "done" and not reported:
                    self._finished(self.party)
                    reported = True
            await asyncio.sleep(0 if training else 0.1)

    def _read(self, host: str, reply: bytes | None, kind: type) -> object:
        if reply is None:
            return None
        try:
            return decode(reply, kind, Refused)
        except BadMessage as error:
            self.party.drop(host, error)
            return None
