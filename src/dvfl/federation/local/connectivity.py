"""Whether a party reaches the hosts, is known there and is answered, and how far their clocks are apart.

It asks questions that change nothing at a host: a greeting in another's name, and a chunk of a run that there is not.
"""

import asyncio
import errno
import json
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoServersError

from dvfl.federation.keys.credentials import client_options
from dvfl.federation.protocol.wire import BadMessage, Collect, Hello, Refused, Role, decode, encode
from dvfl.federation.transport.accounts import COLLECT, Site, split_address

APART_S = 30.0  # clocks that differ by more are not kept by anything
_CONNECT_S = 3
_ANSWER_S = 3.0
_AGAIN, _PAUSE_S = 3, 0.25  # a broker that reloads cuts off those who are about to enter
_LEAVE_S = 0.3  # after a handshake that failed nats-py waits for good, with the socket closed
_TROUBLE = (NatsError, OSError, asyncio.TimeoutError, asyncio.InvalidStateError)


class Finding(NamedTuple):
    """One thing that was looked at."""

    subject: str
    well: bool
    says: str  # how it is; or what is wrong, and what would mend it


@dataclass(frozen=True)
class Visitor:
    """Who looks."""

    folder: Path
    party: str
    role: Role
    federation: str


async def look_at_hosts(visitor: Visitor, addresses: dict[str, str]) -> list[Finding]:
    """What a guest or the owner finds at each host."""
    found = await asyncio.gather(*(_look(visitor, host, at) for host, at in addresses.items()))
    return [finding for findings in found for finding in findings]


async def look_at_own_broker(visitor: Visitor, site: Site) -> list[Finding]:
    """What a host finds at its own address: its broker, or a port that is free for it."""
    where, port = site.address()
    free = _why_not_free(where, port)
    if free is None:
        return [Finding("port", True, f"{site.listen} is free; the host does not run")]
    if free.errno == errno.EADDRINUSE:
        findings = await _look(visitor, site.host, site.url.removeprefix("tls://"))
        if findings[0].well:
            return findings
        mend = "restart the host, end the program that has the port, or choose another in [broker] listen"
        return [Finding("port", False, f"{site.listen} is taken, not by this host's broker as it should be; {mend}")]
    mend = {
        errno.EADDRNOTAVAIL: f"it is not an address of this machine; choose one in [broker] listen, as 0.0.0.0:{port}",
        errno.EACCES: "this user may not; choose a port from 1024 on in [broker] listen",
    }.get(free.errno or 0, "choose another in [broker] listen")
    return [Finding("port", False, f"{site.listen} cannot be listened on ({free.strerror}): {mend}")]


async def _look(visitor: Visitor, host: str, address: str) -> list[Finding]:
    if split_address(address) is None:
        return [Finding(host, False, f"'{address}' is no address; ADDRESS:PORT in [hosts] of party.toml is right")]
    client, why = await _connected(visitor, host, address)
    if client is None:
        return [Finding(host, False, f"{address}: {why}")]
    try:
        findings = [Finding(host, True, f"{address} is reached, by TLS, and is {host}")]
        findings.append(await _clock(client, visitor, host))
        return [*findings, await _answered(client, visitor, host)]
    finally:
        await _leave(client)


async def _connected(visitor: Visitor, host: str, address: str) -> tuple[Client | None, str]:
    """A connection; or none, and why."""
    made = await _connection(visitor, host, address)
    for _ in range(_AGAIN):
        if not _cut_off(made):
            break
        await asyncio.sleep(_PAUSE_S)
        made = await _connection(visitor, host, address)
    return (made, "") if isinstance(made, Client) else (None, _explained(made, visitor, host))


def _cut_off(made: Client | Exception) -> bool:
    """Whether somebody took the connection and then broke it off without a word."""
    return isinstance(made, ConnectionError) and not isinstance(made, ConnectionRefusedError)


async def _connection(visitor: Visitor, host: str, address: str) -> Client | Exception:
    """A connection, or what was in its way."""
    causes: list[Exception] = []

    async def note(cause: Exception) -> None:
        causes.append(cause)

    client = Client()
    try:
        await client.connect(
            f"tls://{address}",
            connect_timeout=_CONNECT_S,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=note,
            **client_options(visitor.folder, host, visitor.federation),
        )
        return client
    except _TROUBLE as error:
        await _leave(client)
        hidden = isinstance(error, NoServersError) and bool(causes)
        return causes[-1] if hidden else error


async def _leave(client: Client) -> None:
    with suppress(*_TROUBLE):
        await asyncio.wait_for(client.close(), _LEAVE_S)


def _explained(error: Exception, visitor: Visitor, host: str) -> str:
    here = "mend [hosts] in party.toml"
    if isinstance(error, socket.gaierror):
        return f"no such name ({error.strerror}); {here}, or this machine's DNS"
    if isinstance(error, ConnectionRefusedError):
        return f"nobody listens there; start dvfl host on {host}, or {here}"
    if isinstance(error, TimeoutError):
        return f"no answer within {_CONNECT_S:.0f} s; let TCP through to that port, or {here}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"who answers is not {host} of this federation ({error.verify_message}); {here}, or ask {host}"
    if isinstance(error, ssl.SSLError | ConnectionError):
        reason = getattr(error, "reason", None) or type(error).__name__
        return f"no TLS ({reason}): another program has that port, or it refuses this certificate; {here}"
    if isinstance(error, NatsError) and "Authorization" in str(error):
        newest = f"{host} takes the newest federation.toml with dvfl join --admission and SIGHUP"
        return f"the broker does not know {visitor.party}; {newest}"
    return f"{type(error).__name__}: {error}; start dvfl host on {host}, or {here}"


async def _clock(client: Client, visitor: Visitor, host: str) -> Finding:
    """The broker says its own time, and as whom it knows the one who asks."""
    began = time.time()
    try:
        answer = json.loads((await client.request("$SYS.REQ.USER.INFO", b"", timeout=_ANSWER_S)).data)
        theirs = datetime.fromisoformat(answer["server"]["time"]).timestamp()
        account = answer["data"]["account"]
    except (*_TROUBLE, ValueError, KeyError, TypeError) as error:
        return Finding(f"{host} clock", False, f"the broker did not tell its time ({type(error).__name__}); try again")
    if account != visitor.party:
        return Finding(f"{host} clock", False, f"the broker takes {visitor.party} for {account}; its host must reload")
    apart = abs(theirs - (began + time.time()) / 2)
    if apart > APART_S:
        return Finding(f"{host} clock", False, f"{apart:.0f} s apart from this machine's; keep both by NTP")
    return Finding(f"{host} clock", True, f"{apart:.1f} s apart")


async def _answered(client: Client, visitor: Visitor, host: str) -> Finding:
    subject = f"{host} answers"
    name, question = _question(visitor)
    try:
        answer = decode((await client.request(name, encode(question), timeout=_ANSWER_S)).data, Refused)
    except BadMessage as error:
        return Finding(subject, False, f"in a way that is not understood ({error}); use one version of dvfl everywhere")
    except _TROUBLE:
        return Finding(subject, False, f"the broker runs and the host behind it does not answer; look at {host}'s log")
    if "the plan has no guest" in answer.reason:
        return Finding(subject, False, f"{answer.reason}")
    return Finding(subject, True, f"{visitor.party} is known there")


def _question(visitor: Visitor) -> tuple[str, Any]:
    """Where to ask what, so that the answer is a refusal and nothing is changed by it."""
    if visitor.role != "guest":
        return "collect" if visitor.role == "owner" else COLLECT, Collect("", "", 0)
    another = "nobody" if visitor.party != "nobody" else "somebody"
    return "hello", Hello("", another, 0, 0, 0, 0, "", 0, 0, 0, 0, 0, 0, None, 0.0)


def _why_not_free(where: str, port: int) -> OSError | None:
    try:
        family, kind, _, _, address = socket.getaddrinfo(where, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None
