"""What a party notes of the messages that pass its lines."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dvfl.errors import RunFailed
from dvfl.federation.protocol.wire import UNREADABLE, Ask, Encodings, Fresh, Refused, Tell, encode
from dvfl.federation.transport.accounts import ALIGN, ENCODE, TELL
from dvfl.federation.transport.journal import Entry, Journal, Noted, journal_path, read_journal
from dvfl.federation.transport.line import Post, Traffic
from dvfl.federation.transport.recorded_lines import (
    RecordedGuestLine,
    RecordedHostLine,
    RecordedOwnerLine,
    recorded_owner_lines,
)

SLOTS, VALUES = np.array([4, 7], np.int32), np.full((2, 3), 1.25, np.float32)
PUSHED = encode(Encodings("r", "guest-1", 1, 2, 3, 4, None, SLOTS, VALUES))
ASKED, TOLD, NO = encode(Ask("r", 900, SLOTS)), encode(Tell("the plan")), encode(Refused("no"))
ANSWERED = encode(Fresh("guest-1", "r", "e", "o", SLOTS, VALUES))


def journal(folder: Path, most_bytes: int = 1 << 20, said: list[str] | None = None) -> Journal:
    return Journal(folder, (said if said is not None else []).append, most_bytes=most_bytes)


def noted(folder: Path) -> Noted:
    found = read_journal(folder)
    assert found is not None
    return found


def told(folder: Path) -> list[tuple[str, str, str]]:
    return [(entry.direction, entry.other, entry.kind) for entry in noted(folder).entries]


def test_a_message_is_noted_with_its_kind_its_size_and_the_shapes_of_its_arrays(tmp_path: Path) -> None:
    before = time.time_ns() // 1_000_000
    journal(tmp_path).note("sent", "host-1", PUSHED)
    (entry,) = noted(tmp_path).entries
    shapes = (("slots", "int32", (2,)), ("values", "float32", (2, 3)))
    assert entry == Entry(entry.at_ms, "sent", "host-1", "Encodings", len(PUSHED), shapes)
    assert before <= entry.at_ms <= time.time_ns() // 1_000_000
    assert entry.floating == ("values",)


def test_no_value_no_slot_and_no_text_of_a_message_is_in_it(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    for message in (PUSHED, ANSWERED, TOLD):
        kept.note("received", "guest-1", message)
    text = journal_path(tmp_path).read_text()
    assert len(text) > 200 and "1.25" not in text and "the plan" not in text
    for line in text.splitlines():
        assert set(json.loads(line)) == {"at_ms", "direction", "other", "kind", "bytes", "arrays"}


def test_bytes_that_are_no_message_are_noted_as_such(tmp_path: Path) -> None:
    kept = journal(tmp_path)
    for data in (b"", b"gradients", PUSHED[:-1], PUSHED.replace(b"encodings", b"gradients")):
        kept.note("received", "host-1", data)
    assert [(entry.kind, entry.arrays) for entry in noted(tmp_path).entries] == [(UNREADABLE, ())] * 4


def test_nobody_else_can_read_it_and_a_folder_without_one_has_none(tmp_path: Path) -> None:
    assert read_journal(tmp_path) is None
    journal(tmp_path)
    assert journal_path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert journal_path(tmp_path).parent.stat().st_mode & 0o777 == 0o700
    assert noted(tmp_path).entries == ()


@pytest.mark.parametrize(
    "damaged", [b'{"at_ms":1,"direction":"se', b'{"kind":"Hello"}', b'{"arrays":4}', b"3", b"\xff"]
)
def test_a_damaged_line_is_left_out_and_counted_and_those_after_it_are_read(damaged: bytes, tmp_path: Path) -> None:
    journal(tmp_path).note("sent", "host-1", PUSHED)
    assert noted(tmp_path).damaged == 0
    with journal_path(tmp_path).open("ab") as file:
        file.write(damaged)
    assert len(noted(tmp_path).entries) == 1 and noted(tmp_path).damaged == 1
    journal(tmp_path).note("received", "host-1", NO)
    assert told(tmp_path) == [("sent", "host-1", "Encodings"), ("received", "host-1", "Refused")]


def test_a_killed_process_leaves_all_that_it_noted(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom dvfl.federation.transport.journal import Journal\n"
        "kept = Journal(Path(sys.argv[1]), print)\n"
        "for _ in range(50): kept.note('sent', 'host-1', b'one')\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
    assert len(noted(tmp_path).entries) == 50


def test_several_processes_share_it(tmp_path: Path) -> None:
    one, other = journal(tmp_path), journal(tmp_path)
    one.note("sent", "host-1", TOLD)
    other.note("sent", "host-2", TOLD)
    one.note("received", "host-1", NO)
    assert told(tmp_path) == [
        ("sent", "host-1", "Tell"),
        ("sent", "host-2", "Tell"),
        ("received", "host-1", "Refused"),
    ]


def test_when_it_is_full_it_says_so_once_and_notes_only_the_first_of_a_sort(tmp_path: Path) -> None:
    said: list[str] = []
    kept = journal(tmp_path, 2000, said)
    for _ in range(1000):
        kept.note("sent", "host-1", PUSHED)
    size, found = journal_path(tmp_path).stat().st_size, noted(tmp_path)
    assert 2000 <= size < 2500 and found.full_ms is not None and len(found.entries) < 20
    assert len(said) == 1 and "is full" in said[0]
    for _ in range(10):
        kept.note("received", "host-1", ANSWERED)  # floating-point numbers to a guest: never seen before
    after = noted(tmp_path).entries[len(found.entries) :]
    assert [(entry.direction, entry.kind, entry.floating) for entry in after] == [("received", "Fresh", ("values",))]
    size = journal_path(tmp_path).stat().st_size
    again = journal(tmp_path, 2000)  # a new process knows what is in it
    again.note("received", "host-1", ANSWERED)
    again.note("sent", "host-1", PUSHED)
    assert journal_path(tmp_path).stat().st_size == size


def test_a_folder_that_cannot_be_written_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "recorded").write_text("in the way")
    with pytest.raises(RunFailed, match=r"messages\.jsonl cannot be written"):
        journal(tmp_path)


def test_a_disk_that_fails_later_is_said_once_and_stops_nobody(tmp_path: Path) -> None:
    said: list[str] = []
    kept = journal(tmp_path, said=said)
    os.close(kept._file)
    for _ in range(3):
        kept.note("sent", "host-1", PUSHED)
    assert len(said) == 1 and "nothing is recorded any more" in said[0]


# On lines.


class Wire:
    """The far end of every sort of line: answers what it is told to answer."""

    traffic = Traffic(5, 6)

    def __init__(self, reply: bytes | None) -> None:
        self.reply = reply
        self.served: dict[str, object] = {}

    async def hello(self, data: bytes) -> bytes | None:
        return self.reply

    tell = collect = hello

    async def push(self, data: bytes) -> bool:
        return True

    async def flushed(self) -> bool:
        return True

    async def letter(self, guest: str, data: bytes) -> bytes | None:
        return self.reply

    async def predict(self, data: bytes, within_s: float) -> bytes | None:
        return self.reply

    async def ask(self, guest: str, data: bytes, within_s: float) -> bytes | None:
        return self.reply

    async def keep_only(self, guests: list[str]) -> bool:
        return True

    async def fetch(self, guest: str, stream: str, sequence: int) -> Post | None:
        return Post("s", [(1, PUSHED), (2, PUSHED)], gap=False) if stream else None

    async def serve(self, subject: str, answer: object) -> None:
        self.served[subject] = answer


async def refuse(data: bytes) -> bytes:
    return NO


def test_a_guest_notes_both_ways_and_tells_hosts_from_the_owner(tmp_path: Path) -> None:
    wire = Wire(NO)
    line = RecordedGuestLine(wire, "host-1", "owner", journal(tmp_path))

    async def story() -> None:
        assert await line.hello(ASKED) == NO and await line.push(PUSHED) and await line.flushed()
        for subject in (ALIGN, ENCODE):
            await line.serve(subject, refuse)
            assert await wire.served[subject](ASKED) == NO  # type: ignore[operator]

    asyncio.run(story())
    assert line.traffic == wire.traffic
    assert told(tmp_path) == [
        ("sent", "host-1", "Ask"),
        ("received", "host-1", "Refused"),
        ("sent", "host-1", "Encodings"),
        ("received", "owner", "Ask"),
        ("sent", "owner", "Refused"),
        ("received", "host-1", "Ask"),
        ("sent", "host-1", "Refused"),
    ]


def test_a_host_notes_streams_questions_and_answers_under_their_party(tmp_path: Path) -> None:
    wire = Wire(ANSWERED)
    line = RecordedHostLine(wire, "owner", journal(tmp_path))

    async def story() -> None:
        post = await line.fetch("guest-2", "s", 0)
        assert post is not None and len(post.messages) == 2 and await line.fetch("guest-2", "", 0) is None
        assert await line.ask("guest-1", ASKED, 1.0) == ANSWERED
        for subject in ("hello.guest-1", TELL):
            await line.serve(subject, refuse)
            assert await wire.served[subject](TOLD) == NO  # type: ignore[operator]

    asyncio.run(story())
    assert told(tmp_path) == [
        ("received", "guest-2", "Encodings"),
        ("received", "guest-2", "Encodings"),
        ("sent", "guest-1", "Ask"),
        ("received", "guest-1", "Fresh"),
        ("received", "guest-1", "Tell"),
        ("sent", "guest-1", "Refused"),
        ("received", "owner", "Tell"),
        ("sent", "owner", "Refused"),
    ]


def test_the_owner_notes_predictions_and_letters_and_what_was_not_answered(tmp_path: Path) -> None:
    line = RecordedOwnerLine(Wire(None), "host-1", journal(tmp_path))

    async def story() -> None:
        for answer in (line.tell(TOLD), line.collect(TOLD), line.predict(ASKED, 1.0), line.letter("guest-1", ASKED)):
            assert await answer is None

    asyncio.run(story())
    assert told(tmp_path) == [
        ("sent", "host-1", "Tell"),
        ("sent", "host-1", "Tell"),
        ("sent", "host-1", "Ask"),
        ("sent", "guest-1", "Ask"),
    ]


def test_without_a_journal_lines_are_what_they_were() -> None:
    lines = {"host-1": Wire(None)}
    assert recorded_owner_lines(lines, None) == lines
