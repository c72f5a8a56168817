"""A whole run of real processes and brokers, alignment first, in which everything that passed a guest's lines was kept.

Why it is everything: a guest listens nowhere and dials only the addresses in its `party.toml`, and all of these lead to
relays that read what they pass on (`recording.py`). The relays keep the lines below NATS, so replies, the broker's own
words and whatever else a guest did not ask for are there too. That the guests' processes had no other connections was
looked at all the while.
"""

import asyncio
import base64
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from digits import make_digits
from recording import Frame, Recorded, Relay, arrays_in, frames

from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.party.settings import Federation
from dvfl.federation.protocol.plan import read_plan
from dvfl.federation.protocol.wire import Ask, Encodings, Hello, Introduce, Letter, Refused, Welcome, decode
from dvfl.federation.transport.accounts import ALIGN, ENCODE
from dvfl.federation.transport.journal import read_journal
from dvfl.federation.transport.streams import stream_name
from dvfl.files import write_text
from dvfl.lab.chaos.chaos_folder import addresses, redirected
from dvfl.lab.chaos.chaos_schedule import link

PATIENCE_S = 120.0
KINDS = {  # that a run cannot do without
    "received": {"Introduce", "Letter", "Welcome", "Ask"},
    "sent": {"Introduced", "Reply", "Hello", "Encodings", "Here"},
}
TABLES, LABELS = ("table.parquet", "test_table.parquet"), ("labels.parquet", "test_labels.parquet")


@dataclass
class Run:
    """What was kept of it."""

    federation: Federation
    result: dict[str, Any]
    relays: dict[tuple[str, str], Relay]  # by guest and host
    reached: set[int]  # ports at the other end of the guests' sockets; 0 for one that listens
    folder: Path

    def lines(self) -> Iterator[tuple[str, list[Frame], list[Frame]]]:
        """Every connection of a guest: whose, what reached it, and what it sent."""
        for (guest, _), relay in self.relays.items():
            for kept in relay.connections:
                yield guest, frames(kept.to_guest), frames(kept.from_guest)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = make_digits(tmp_path_factory.mktemp("recorded") / "practice")
    for party, files in {"guest-1": TABLES, "guest-2": TABLES, "owner": LABELS}.items():
        for file in files:
            plant(folder / party / file, planted(party))
    for path in folder.glob("*/party.toml"):
        text = path.read_text()
        assert "record = false" in text
        path.write_text(text.replace("record = false", "record = true"))
    return asyncio.run(recorded(folder))


def planted(party: str) -> str:
    """How the ids of rows begin that this party alone has."""
    return f"only {party} knows "


def plant(path: Path, beginning: str) -> None:
    """Every tenth row once more, under an id that nobody else has."""
    table = pd.read_parquet(path)
    more = table.iloc[::10].copy()
    more["id"] = [f"{beginning}{path.stem} {number}" for number in range(len(more))]
    pd.concat([table, more]).to_parquet(path, index=False)


async def recorded(folder: Path) -> Run:
    supervisor = Supervisor(folder)
    federation = supervisor.federation
    at = addresses(folder, federation)
    relays = {
        (guest, host): Relay(folder / guest, folder / host, federation.name, at[link(guest, host)])
        for guest in federation.guests
        for host in federation.hosts
    }
    to = {link(*ends): await relay.start() for ends, relay in relays.items()}
    for path, text in redirected(folder, federation, {**at, **to}).items():
        write_text(path, text)
    reached: set[int] = set()
    supervisor.start()
    try:
        until = time.monotonic() + PATIENCE_S
        while not supervisor.result.exists():
            assert time.monotonic() < until, [supervisor.last_words(party) for party in supervisor.roles]
            supervisor.watch()
            for guest in federation.guests:
                reached |= ports(supervisor.processes[guest].pid)
            await asyncio.sleep(0.1)
    finally:
        await asyncio.to_thread(supervisor.stop)
    for relay in relays.values():
        await relay.close()
    return Run(federation, json.loads(supervisor.result.read_text()), relays, reached, folder)


def ports(pid: int) -> set[int]:
    """The far ports of a process's sockets (Linux)."""
    own: set[str] = set()
    with suppress(OSError):  # one that is closed while we look
        for entry in os.scandir(f"/proc/{pid}/fd"):
            own |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(entry.path)))
    found: set[int] = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            rows = [row.split() for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
            found |= {int(row[2].rpartition(":")[2], 16) for row in rows if row[9] in own}
    return found


def answers(guest: str, frame: Frame, asked: dict[str, str], run: Run) -> None:
    """Holds one message to what may reach a guest: letters, a host's questions, or an answer to what it asked."""
    if frame.words[1] == ALIGN:
        message = decode(frame.payload, Introduce, Letter)
        assert arrays_in(message) == (["content"] if isinstance(message, Letter) else [])
        return
    if frame.words[1] == ENCODE:
        assert arrays_in(decode(frame.payload, Ask)) == ["slots"]
        return
    question = asked[frame.words[1]]
    if frame.headers.startswith(b"NATS/1.0 503"):  # the broker's own: nobody is there to answer yet
        assert not frame.payload
        return
    if question == "push":  # the broker's own: it is in the stream
        receipt = json.loads(frame.payload)
        assert receipt == {"stream": stream_name(guest), "seq": int(receipt["seq"])} and not frame.headers
        return
    # What the broker told the host of the request, which nats-py sends back with the answer.
    assert re.fullmatch(
        rb'NATS/1\.0\r\nNats-Request-Info: {"acc":"%b","rtt":\d+}\r\n\r\n' % guest.encode(), frame.headers
    )
    message = decode(frame.payload, Welcome, Refused)
    assert arrays_in(message) == []
    if isinstance(message, Welcome) and message.plan:
        read_plan(message.plan, run.federation.key())  # the owner's, as it was signed before any training


def test_the_run_had_a_result_and_every_guest_talked_to_every_host_through_its_relay(run: Run) -> None:
    assert run.result["accuracy_mean"] > 50
    assert all(relay.connections for relay in run.relays.values())


@pytest.mark.skipif(
    not Path("/proc/self/net/tcp").exists(), reason="sockets of a process are looked up in Linux's /proc"
)
def test_guests_had_no_line_but_those_that_were_recorded(run: Run) -> None:
    assert run.reached == {relay.port for relay in run.relays.values()}


def test_every_message_to_a_guest_is_a_known_answer_without_a_floating_point_array(run: Run) -> None:
    for guest, received, sent in run.lines():
        asked = {frame.words[2]: frame.words[1] for frame in sent if frame.kind == "PUB" and len(frame.words) == 4}
        for frame in received:
            if frame.kind in ("MSG", "HMSG"):
                answers(guest, frame, asked, run)
            else:
                assert frame.kind in ("INFO", "PING", "PONG"), frame  # the broker's own; a refusal would be -ERR


def test_the_same_look_finds_the_arrays_that_guests_send(run: Run) -> None:
    for _, _, sent in run.lines():
        pushed = [frame for frame in sent if frame.kind == "PUB" and frame.words[1] in ("push", "hello")]
        messages = [decode(frame.payload, Hello, Encodings) for frame in pushed]
        assert {tuple(arrays_in(message)) for message in messages} == {(), ("slots", "values")}


def test_little_reaches_guests_beside_what_they_send_once_they_are_aligned(run: Run) -> None:
    kept = [one for relay in run.relays.values() for one in relay.connections]
    letters = sum(
        len(frame.payload) for _, received, _ in run.lines() for frame in received if frame.words[1:2] == [ALIGN]
    )
    assert letters > 0
    assert sum(len(one.from_guest) for one in kept) > 50 * (sum(len(one.to_guest) for one in kept) - letters)


def test_a_guests_own_journal_has_every_message_that_reached_it_and_every_one_that_it_sent(run: Run) -> None:
    for guest in run.federation.guests:
        passed: dict[str, Counter[tuple[str, int]]] = {"received": Counter(), "sent": Counter()}
        for whose, received, sent in run.lines():
            for direction, kept in (("received", received), ("sent", sent)) if whose == guest else ():
                messages = [frame.payload for frame in kept if frame.payload.startswith(b"DVFL")]
                passed[direction].update((type(decode(one)).__name__, len(one)) for one in messages)
        noted = read_journal(run.folder / guest)
        assert noted is not None and noted.full_ms is None
        for direction, counted in passed.items():
            own = Counter((entry.kind, entry.bytes) for entry in noted.entries if entry.direction == direction)
            # What was under way when the guest left may be in one of the two alone; greetings before a host was up
            # did not get as far as the relay.
            more = sum(count for (kind, _), count in (own - counted).items() if kind != "Hello")
            assert sum((counted - own).values()) <= 4 and more <= 4
            assert {kind for kind, _ in counted} >= KINDS[direction]


def test_hosts_and_owner_noted_what_they_got_and_no_journal_has_a_floating_point_array_to_a_guest(run: Run) -> None:
    got = {"host-1": ("guest-1", "Encodings"), "host-2": ("guest-2", "Encodings"), "owner": ("host-1", "Chunk")}
    guests = set(run.federation.guests)
    for party in (*got, *guests):
        noted = read_journal(run.folder / party)
        assert noted is not None
        floating = {(one.direction, one.other, one.kind) for one in noted.entries if one.floating}
        if party in got:
            assert ("received", *got[party]) in floating
            assert not any(direction == "sent" and other in guests for direction, other, _ in floating)
        else:
            assert floating == {("sent", "host-1", "Encodings"), ("sent", "host-2", "Encodings")}


# Ids.


def test_rows_that_one_party_alone_has_were_aligned_too(run: Run) -> None:
    for party in ("guest-1", "guest-2"):
        slots = pd.read_parquet(run.folder / party / "state" / "slots.parquet")
        own = slots[slots["id"].str.startswith(planted(party))]
        other = pd.read_parquet(run.folder / ("guest-2" if party == "guest-1" else "guest-1") / "state/slots.parquet")
        assert len(own) == 144 + 36 and set(own["slot"]).isdisjoint(other["slot"])
    labelled = pd.read_parquet(run.folder / "owner" / "state" / "slots.parquet")
    assert not labelled["id"].str.startswith(planted("owner")).any()


def test_no_id_passed_a_line_in_clear(run: Run) -> None:
    ids = pd.read_parquet(run.folder / "guest-1" / "table.parquet")["id"].tolist()
    needles = [*ids[:50], *(planted(party) for party in ("guest-1", "guest-2", "owner"))]
    streams = [bytes(part) for one in connections(run) for part in (one.from_guest, one.to_guest)]
    assert sum(map(len, streams)) > 1_000_000
    for needle in needles:
        for form in forms(needle):
            assert not any(form in stream for stream in streams)


def test_ids_lie_in_no_folder_but_that_of_a_party_that_has_them(run: Run) -> None:
    parties = ("guest-1", "guest-2", "owner")
    shared = pd.read_parquet(run.folder / "guest-1" / "table.parquet")["id"].tolist()[:20]
    for path in sorted(run.folder.rglob("*")):
        if not path.is_file():
            continue
        home = path.relative_to(run.folder).parts[0]
        needles = [planted(party) for party in parties if party != home] + ([] if home in parties else shared)
        if home in parties and "state" not in path.parts and path.suffix != ".parquet":
            needles = [*map(planted, parties), *shared]  # logs, status, result: no ids at all, not even one's own
        assert not found(path, needles), path


def connections(run: Run) -> list[Recorded]:
    return [one for relay in run.relays.values() for one in relay.connections]


def forms(text: str) -> list[bytes]:
    """As somebody may write it."""
    plain = text.encode()
    return [plain, text.encode("utf-16-le"), plain.hex().encode(), plain.hex().upper().encode(), b64(plain)]


def b64(plain: bytes) -> bytes:
    return base64.b64encode(plain)[: len(plain) // 3 * 4]


def found(path: Path, needles: list[str]) -> list[str]:
    compressed = path.suffix == ".parquet"
    content = pd.read_parquet(path).to_csv().encode() if compressed else path.read_bytes()
    return [needle for needle in needles if any(form in content for form in forms(needle))]
