"""What one party of a real federation recorded of its lines: how much of what passed, and whether anything flowed back.

A party records where its `party.toml` says `record = true`, never values or ids (`federation.transport.journal`).
"""

from collections import defaultdict
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from dvfl.errors import UserError
from dvfl.federation.party.configuration import load
from dvfl.federation.party.settings import PARTY, Federation, read_federation, role_of
from dvfl.federation.protocol.messages import Role
from dvfl.federation.protocol.wire import UNREADABLE
from dvfl.federation.transport.journal import Entry, Noted, journal_path, read_journal


@dataclass(frozen=True)
class PartyRecording:
    """A party's folder, as an audit reads it."""

    party: str
    role: Role
    federation: Federation
    noted: Noted

    def role_of(self, other: str) -> Role:
        """Of a party at the other end; one that has been taken out since counts as a guest."""
        if other == self.federation.owner:
            return "owner"
        return "host" if other in self.federation.hosts else "guest"

    def to_guest(self, entry: Entry) -> bool:
        """Whether a message was on its way to a guest."""
        return self.role == "guest" if entry.direction == "received" else self.role_of(entry.other) == "guest"


def party_recording(folder: Path) -> PartyRecording:
    """What a party recorded; UserError where it did not."""
    role, federation = role_of(folder), read_federation(folder)
    plain = load(folder / PARTY)
    noted = read_journal(folder)
    if noted is None:
        on = plain.get("record") is True
        mend = "is set: it has not run since" if on else f"in {folder / PARTY} is right, and that it runs again"
        raise UserError(f"{journal_path(folder)}: the {role} has recorded nothing; record = true {mend}")
    return PartyRecording(str(plain.get("party", "")), role, federation, noted)


def wire_summary(folder: Path) -> dict[str, Any]:
    """Plain data: what passed, by kind, direction and the role at the other end, with its floating-point arrays."""
    seen = party_recording(folder)
    kinds: defaultdict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for entry in seen.noted.entries:
        kinds[entry.kind, entry.direction, seen.role_of(entry.other)].append(entry)
    times = [entry.at_ms for entry in seen.noted.entries]
    return {
        "party": seen.party,
        "role": seen.role,
        "first_ms": min(times, default=None),
        "last_ms": max(times, default=None),
        "full_ms": seen.noted.full_ms,  # counts are too low from then on; a kind that is not here did not pass
        "messages": [
            {
                "kind": kind,
                "direction": direction,
                "other": other,
                "count": len(entries),
                "bytes": sum(entry.bytes for entry in entries),
                "floating": sorted({name for entry in entries for name in entry.floating}),
                "floating_numbers": sum(map(_numbers, entries)),
            }
            for (kind, direction, other), entries in sorted(kinds.items())
        ],
        "damaged": seen.noted.damaged,  # lines of the recording itself
        "unreadable": sum(entry.kind == UNREADABLE for entry in seen.noted.entries),
        "floating_to_guests": len(_feedback(seen)),
    }


def feedback(folder: Path) -> list[Entry]:
    """The messages that carried a floating-point array to a guest: none, where nothing flows back.

    Bytes that are no message are not among them: parties drop them unread, and `wire_summary` counts them. What owner
    and guests seal for each other (`Letter`) counts as the octets that it is.
    """
    return _feedback(party_recording(folder))


def _feedback(seen: PartyRecording) -> list[Entry]:
    return [entry for entry in seen.noted.entries if entry.floating and seen.to_guest(entry)]


def _numbers(entry: Entry) -> int:
    return sum(prod(shape) for name, _, shape in entry.arrays if name in entry.floating)
