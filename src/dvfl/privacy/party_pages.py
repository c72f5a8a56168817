"""A party's audit of itself as people read it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dvfl.privacy.attacks.inversion import strongest
from dvfl.privacy.measured import Measured
from dvfl.privacy.summary import figure
from dvfl.privacy.templating import rendered


@dataclass(frozen=True)
class PartyAudit:
    """What passed a party's lines; of a guest also how well its encodings can be inverted."""

    party: str
    wire: dict[str, Any]
    guest: dict[str, Any] | None  # rows, defence and releases, of a guest
    figures: Sequence[Measured]
    back: Sequence[str]  # messages that carried floating-point numbers to a guest

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {"party": self.party, "wire": self.wire, "guest": self.guest, "feedback": list(self.back)}
        return {**plain, "figures": [one.as_dict() for one in self.figures]}


def sentences(audit: PartyAudit) -> list[str]:
    """In short."""
    messages = sum(one["count"] for one in audit.wire["messages"])
    told = [f"{audit.party} is a {audit.wire['role']}. It recorded {messages:,} messages."]
    if audit.back:
        told.append(f"{len(audit.back)} of them carried floating-point numbers to a guest, {audit.back[0]} first.")
    else:
        told.append("None carried a floating-point number to a guest: there is no backward channel.")
    if audit.wire["unreadable"]:
        told.append(f"{audit.wire['unreadable']:,} could not be read, and were dropped by the party.")
    if audit.guest is not None:
        times, defence = audit.guest["releases"], _defence(audit.guest)
        told.append(f"Its encodings ({defence}) are sent {times} times of each row, and once more for a prediction.")
    best = sorted(strongest(one for one in audit.figures if not one.control), key=lambda one: one.known)
    for one in best:
        told.append(
            f"A host that knows the columns of {one.known:,} of its people reconstructs {figure(one)} of the variance"
            f" of everybody else's ({one.way}){_beside(audit, one)}."
        )
    return told


def _defence(guest: dict[str, Any]) -> str:
    """What keeps its columns from those who see its encodings."""
    parts = ["learned by comparing altered copies"] if guest["guest_objective"] == "simclr" else []
    parts += [f"learned against a decoder, weight {guest['adversary']:g}"] if guest["adversary"] else []
    parts += ["all directions equally strong"] if guest["flatten"] else []
    if guest["clip"] is not None:
        parts += [f"clipped to {guest['clip']:g}, noise {guest['noise']:g} times that"]
    return ", ".join(parts) or "no defence"


def markdown(audit: PartyAudit) -> str:
    """The audit as text."""
    text = [f"# What leaks: {audit.party}", "", *(f"- {sentence}" for sentence in sentences(audit)), ""]
    for title, heads, rows in _tables(audit):
        text += [f"## {title}", "", "| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
        text += ["| " + " | ".join(row) + " |" for row in rows] + [""]
    return "\n".join(text)


def page(audit: PartyAudit) -> str:
    """The audit on one page that needs nothing but itself."""
    return rendered("party.html", party=audit.party, sentences=sentences(audit), tables=_tables(audit))


def _beside(audit: PartyAudit, one: Measured) -> str:
    """The controls of a figure."""
    told = []
    for control, words in (("raw features", "raw columns"), ("random encoder", "an untrained encoder")):
        same = [other for other in audit.figures if other.control == control and other.known == one.known]
        if same:
            told.append(f"{words} {figure(max(same, key=lambda other: other.mean))}")
    return f"; {', '.join(told)}" if told else ""


def _tables(audit: PartyAudit) -> list[tuple[str, list[str], list[list[str]]]]:
    wire = [
        [
            one["kind"],
            one["direction"],
            one["other"],
            f"{one['count']:,}",
            f"{one['bytes']:,}",
            ", ".join(one["floating"]) or "none",
        ]
        for one in audit.wire["messages"]
    ]
    heads = ["message", "direction", "other end", "count", "bytes", "floating-point arrays"]
    tables = [("What passed its lines", heads, wire)]
    if audit.figures:
        rows = [
            [one.way, f"{one.known:,}", figure(one), one.control]
            for one in (replace(one, values=(one.mean,)) for one in audit.figures)
        ]
        tables.append(("Every figure", ["way", "known rows", "of the variance", "instead of encodings"], rows))
    return tables
