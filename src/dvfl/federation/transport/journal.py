"""What passed a party's lines, noted in its folder for an audit: kinds, sizes and shapes, never values or ids.

A line is written with one call, so what was noted before a kill is there, and several processes of one party (`dvfl
predict` beside `dvfl owner`) can share the file. Once it is full only what is the first of its sort is noted, so that
nothing new goes unseen however long the party runs.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dvfl.federation.protocol.wire import Outline, outline
from dvfl.files import writing

RECORDED, MESSAGES = "recorded", "messages.jsonl"
MOST_BYTES = 64 << 20  # about 400,000 messages
Direction = Literal["sent", "received"]


@dataclass(frozen=True)
class Entry:
    """One message. What was sent was given to the line; whether it arrived is not known."""

    at_ms: int
    direction: Direction
    other: str  # party
    kind: str  # the message's, or `wire.UNREADABLE`
    bytes: int
    arrays: tuple[tuple[str, str, tuple[int, ...]], ...]  # name, type and shape of each

    @property
    def floating(self) -> tuple[str, ...]:
        """Arrays of floating-point numbers, by name."""
        return tuple(name for name, dtype, _ in self.arrays if dtype.startswith(("float", "bfloat", "complex")))

    @property
    def sort(self) -> tuple[Any, ...]:
        """What messages have in common that differ in time and size alone."""
        return self.direction, self.other, self.kind, tuple((name, dtype) for name, dtype, _ in self.arrays)


@dataclass(frozen=True)
class Noted:
    """A whole journal."""

    entries: tuple[Entry, ...]
    full_ms: int | None  # since when only the first of each sort is in it; None: all are
    damaged: int  # lines that were cut off or changed


class Journal:
    """Appends to the journal in a party's folder. Whatever keeps it from that is said once, and stops nobody."""

    def __init__(self, folder: Path, log: Callable[[str], None], *, most_bytes: int = MOST_BYTES) -> None:
        self._path, self._log, self._most = journal_path(folder), log, most_bytes
        with writing(self._path):
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":  # a full disk may have cut off the last line
                os.write(self._file, b"\n")
        self._seen = {entry.sort for entry in _noted(self._path).entries} if size >= most_bytes else set()
        self._full, self._failed = size >= most_bytes, False

    def note(self, direction: Direction, other: str, data: bytes) -> None:
        """One message that passes."""
        if self._failed:
            return
        made: Outline = outline(data)
        entry = Entry(time.time_ns() // 1_000_000, direction, other, made.kind, len(data), made.arrays)
        try:
            if not self._full and os.fstat(self._file).st_size >= self._most:
                self._full = True
                self._write({"full_ms": entry.at_ms})
                self._log(f"{self._path} is full: from now on only messages of a new sort are recorded")
            if not self._full or entry.sort not in self._seen:
                self._seen.add(entry.sort)
                self._write(vars(entry))
        except OSError as error:
            self._failed = True
            self._log(f"{self._path} cannot be written ({error.strerror}); nothing is recorded any more")

    def close(self) -> None:
        """Leaves the file as it is."""
        if not self._failed:
            self._failed = True
            os.close(self._file)

    def _write(self, plain: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(plain, separators=(",", ":")).encode() + b"\n")


def journal_path(folder: Path) -> Path:
    """Where a party's journal lies."""
    return folder / RECORDED / MESSAGES


def read_journal(folder: Path) -> Noted | None:
    """A party's journal, which may be in use; None where there is none. Damaged lines are left out, and counted."""
    path = journal_path(folder)
    return _noted(path) if path.exists() else None


def _noted(path: Path) -> Noted:
    entries: list[Entry] = []
    full: list[int] = []
    damaged = 0
    with path.open("rb") as file:
        for line in file:
            try:
                plain = json.loads(line)
                if "full_ms" in plain:
                    full.append(int(plain["full_ms"]))
                else:
                    arrays = tuple((name, dtype, tuple(shape)) for name, dtype, shape in plain.pop("arrays"))
                    entries.append(Entry(**plain, arrays=arrays))
            except (ValueError, TypeError, KeyError, AttributeError):
                damaged += line != b"\n"
    return Noted(tuple(entries), min(full, default=None), damaged)
