"""What a party needs of the line to a broker, whatever carries it.

A line never raises for what a network does: what did not get through in time is None or False.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

REQUEST_S = 5.0  # an answer that takes longer does not come


class Traffic(NamedTuple):
    """Bytes of all messages that this process has sent and received on a line."""

    sent: int
    received: int


class GuestLine(Protocol):
    """From a guest to one host."""

    @property
    def traffic(self) -> Traffic: ...

    async def hello(self, data: bytes) -> bytes | None:
        """Asks, and waits for the answer at most `REQUEST_S`."""

    async def push(self, data: bytes) -> bool:
        """Sends one message; returns as soon as there is room for the next. False: the host is away."""

    async def flushed(self) -> bool:
        """Waits until everything pushed is acknowledged or lost; whether nothing was lost."""

    async def serve(self, subject: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Answers the host's requests and the owner's that come by it, through losses of the connection as well."""


class Post(NamedTuple):
    """What a host read from one guest's stream."""

    stream: str  # the stream's identity: another one has lost what the former held
    messages: list[tuple[int, bytes]]  # with their numbers in it
    gap: bool  # messages before these are gone unread


class HostLine(Protocol):
    """From a host to its own broker."""

    @property
    def traffic(self) -> Traffic: ...

    async def fetch(self, guest: str, stream: str, sequence: int) -> Post | None:
        """What came from a guest after that place; waits a little where nothing did. None: the broker is away."""

    async def keep_only(self, guests: list[str]) -> bool:
        """Deletes what all others had pushed; whether the broker has done it."""

    async def serve(self, subject: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Answers requests from now on, several at once, through restarts of the broker as well."""

    async def ask(self, guest: str, data: bytes, within_s: float) -> bytes | None:
        """Asks a guest; None as soon as it is clear that no answer comes in time."""


class OwnerLine(Protocol):
    """From the owner to one host."""

    async def tell(self, data: bytes) -> bytes | None: ...
    async def collect(self, data: bytes) -> bytes | None: ...
    async def predict(self, data: bytes, within_s: float) -> bytes | None:
        """None as soon as it is clear that no answer comes in time."""

    async def letter(self, guest: str, data: bytes) -> bytes | None:
        """Asks a guest by way of this host; it carries what it cannot read."""
