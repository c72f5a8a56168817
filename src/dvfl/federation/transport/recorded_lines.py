"""Lines that note in the party's journal what passes them, and are otherwise the lines that they stand before."""

from collections.abc import Awaitable, Callable, Mapping

from dvfl.federation.transport.accounts import ALIGN
from dvfl.federation.transport.journal import Journal
from dvfl.federation.transport.line import GuestLine, HostLine, OwnerLine, Post, Traffic

Answer = Callable[[bytes], Awaitable[bytes]]


def recorded_guest_lines(lines: Mapping[str, GuestLine], owner: str, journal: Journal | None) -> dict[str, GuestLine]:
    """A guest's lines to its hosts; without a journal, as they are."""
    if journal is None:
        return dict(lines)
    return {host: RecordedGuestLine(line, host, owner, journal) for host, line in lines.items()}


def recorded_owner_lines(lines: Mapping[str, OwnerLine], journal: Journal | None) -> dict[str, OwnerLine]:
    """The owner's lines to its hosts; without a journal, as they are."""
    if journal is None:
        return dict(lines)
    return {host: RecordedOwnerLine(line, host, journal) for host, line in lines.items()}


class RecordedGuestLine:
    """From a guest to one host, and by it from the owner."""

    def __init__(self, line: GuestLine, host: str, owner: str, journal: Journal) -> None:
        self._line, self._host, self._owner, self._journal = line, host, owner, journal

    @property
    def traffic(self) -> Traffic:
        return self._line.traffic

    async def hello(self, data: bytes) -> bytes | None:
        return await _asked(self._journal, self._host, data, self._line.hello(data))

    async def push(self, data: bytes) -> bool:
        self._journal.note("sent", self._host, data)
        return await self._line.push(data)

    async def flushed(self) -> bool:
        return await self._line.flushed()

    async def serve(self, subject: str, answer: Answer) -> None:
        other = self._owner if subject == ALIGN else self._host
        await self._line.serve(subject, _answering(self._journal, other, answer))


class RecordedHostLine:
    """From a host to its own broker."""

    def __init__(self, line: HostLine, owner: str, journal: Journal) -> None:
        self._line, self._owner, self._journal = line, owner, journal

    @property
    def traffic(self) -> Traffic:
        return self._line.traffic

    async def fetch(self, guest: str, stream: str, sequence: int) -> Post | None:
        post = await self._line.fetch(guest, stream, sequence)
        for _, data in post.messages if post is not None else ():
            self._journal.note("received", guest, data)
        return post

    async def keep_only(self, guests: list[str]) -> bool:
        return await self._line.keep_only(guests)

    async def serve(self, subject: str, answer: Answer) -> None:
        greeting, _, guest = subject.partition(".")
        other = guest if greeting == "hello" else self._owner
        await self._line.serve(subject, _answering(self._journal, other, answer))

    async def ask(self, guest: str, data: bytes, within_s: float) -> bytes | None:
        return await _asked(self._journal, guest, data, self._line.ask(guest, data, within_s))


class RecordedOwnerLine:
    """From the owner to one host, and by it to guests."""

    def __init__(self, line: OwnerLine, host: str, journal: Journal) -> None:
        self._line, self._host, self._journal = line, host, journal

    async def tell(self, data: bytes) -> bytes | None:
        return await _asked(self._journal, self._host, data, self._line.tell(data))

    async def collect(self, data: bytes) -> bytes | None:
        return await _asked(self._journal, self._host, data, self._line.collect(data))

    async def predict(self, data: bytes, within_s: float) -> bytes | None:
        return await _asked(self._journal, self._host, data, self._line.predict(data, within_s))

    async def letter(self, guest: str, data: bytes) -> bytes | None:
        return await _asked(self._journal, guest, data, self._line.letter(guest, data))


async def _asked(journal: Journal, other: str, data: bytes, answer: Awaitable[bytes | None]) -> bytes | None:
    """Noted before it is sent: a kill in between leaves a line too many, never one too few."""
    journal.note("sent", other, data)
    reply = await answer
    if reply is not None:
        journal.note("received", other, reply)
    return reply


def _answering(journal: Journal, other: str, answer: Answer) -> Answer:
    async def answering(data: bytes) -> bytes:
        journal.note("received", other, data)
        reply = await answer(data)
        journal.note("sent", other, reply)
        return reply

    return answering
