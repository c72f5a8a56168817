"""A guest at work: greets hosts, trains, pushes what it made, sweeps at the end, and stays for predictions."""

import asyncio
from collections.abc import Mapping

from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.guest.guest_answers import Files, GuestAnswers
from dvfl.federation.party.runtime import Surroundings, awaited
from dvfl.federation.party.tasks import together
from dvfl.federation.protocol.wire import BadMessage, Encodings, Refused, Welcome, decode, encode
from dvfl.federation.transport.line import GuestLine

_SAVE_S = 10.0  # between two checkpoints inside an epoch
_OFTEN_S, _SELDOM_S = 1.0, 30.0  # between two hellos: while something is awaited from the host, and otherwise
_AGAIN_S = 10.0  # before a sweep that did not get through whole is sent once more


class GuestService:
    """Runs one guest until it is stopped."""

    def __init__(
        self, party: GuestParty, lines: Mapping[str, GuestLine], here: Surroundings, files: Files | None = None
    ) -> None:
        self.party, self._lines, self._here = party, lines, here
        self._answers = GuestAnswers(party, here, files)
        self._lock = asyncio.Lock()  # the party does one thing at a time
        self._up = dict.fromkeys(lines, False)  # hosts that answered the last time
        self._swept = dict.fromkeys(lines, (False, 0))  # whether the last sweep was final, and when it was sent
        self._saved_ms = here.now_ms()

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, or a task fails; then saves and leaves."""
        await self._answers.serve(self._lines)
        greetings = [self._greet(host) for host in self._lines]
        await together(stop, *greetings, self._train(), self._answers.watch())
        self.party.save()

    async def _greet(self, host: str) -> None:
        while True:
            await self._hello(host)
            for _ in range(round(_SELDOM_S / _OFTEN_S)):
                await asyncio.sleep(_OFTEN_S)
                if self._awaits(host):
                    break

    def _awaits(self, host: str) -> bool:
        seen = self.party.hosts.get(host)
        if seen is None or not self._up[host] or not seen.ready or seen.refill:
            return True
        return self.party.trained and not (seen.swept or seen.frozen)

    def _hears(self, host: str) -> bool:
        """Whether what is pushed to a host will be read there."""
        seen = self.party.hosts.get(host)
        return self._up[host] and seen is not None and seen.ready

    async def _hello(self, host: str) -> None:
        async with self._lock:
            data = encode(self.party.hello())
        reply = await awaited(self.party, self._here, self._lines[host].hello(data))
        async with self._lock:
            self._up[host] = reply is not None
            if reply is None:
                return
            try:
                answer = decode(reply, Welcome, Refused)
            except BadMessage as error:
                self.party.drop(host, error)
                return
            if isinstance(answer, Refused):
                self.party.drop(host, f"refused, {answer.reason}")
            elif isinstance(answer, Welcome):
                self.party.welcomed(host, answer)

    async def _train(self) -> None:
        while True:
            for host in self._lines:
                await self._sweep_if_due(host)
            if self.party.signed is None or self.party.trained:
                await asyncio.sleep(0.1)
                continue
            async with self._lock:
                epoch = self.party.epoch
                message = await self._here.work(self.party.train)
                if self.party.epoch > epoch or self._here.now_ms() - self._saved_ms >= 1000 * _SAVE_S:
                    await self._here.work(self.party.save)
                    self._saved_ms = self._here.now_ms()
            if message is not None:
                await self._push(message, [host for host in self._lines if self._hears(host)])

    async def _push(self, message: Encodings, hosts: list[str]) -> None:
        data = encode(message)
        pushes = asyncio.gather(*(self._lines[host].push(data) for host in hosts))
        sent = await awaited(self.party, self._here, pushes)
        for host, through in zip(hosts, sent, strict=True):
            self.party.counts["messages_sent" if through else "messages_dropped"] += 1
            self._up[host] = self._up[host] and through

    async def _sweep_if_due(self, host: str) -> None:
        """Sends a host every slot, if it has lost them or training is over, and it has not got them just now."""
        seen = self.party.hosts.get(host)
        if seen is None or not self._hears(host) or self.party.signed is None or seen.frozen:
            return
        if not (seen.refill or (self.party.trained and not seen.swept)):
            return
        final, sent_ms = self._swept[host]
        if final == self.party.trained and self._here.now_ms() - sent_ms < 1000 * _AGAIN_S:
            return
        final = self.party.trained
        for message in self.party.sweep():
            await self._push(message, [host])
            if not self._up[host]:
                return
        await awaited(self.party, self._here, self._lines[host].flushed())
        self._swept[host] = final, self._here.now_ms()
