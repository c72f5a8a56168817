"""A party's audit of itself as people read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dvfl.audit.attacks.inversion import strongest
from dvfl.audit.pages.summary import figure, knew, pairs
from dvfl.audit.pages.templating import rendered
from dvfl.audit.recordings.measured import Measured
from dvfl.release.accounting import DELTA, as_plain, promise, release_epsilon


@dataclass(frozen=True)
class PartyAudit:
    """What passed a party's lines; of a guest also how well its encodings can be inverted, of an owner what hosts'
    encodings tell of labels, and predictions of who was trained on."""

    party: str
    wire: dict[str, Any]
    guest: dict[str, Any] | None  # rows, defence and releases, of a guest
    figures: Sequence[Measured]
    back: Sequence[str]  # messages that carried floating-point numbers to a guest
    unmeasured: str = ""  # why there are no figures where there could be some

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain: dict[str, Any] = {
            "party": self.party,
            "wire": self.wire,
            "guest": self.guest,
            "feedback": list(self.back),
        }
        plain["unmeasured"] = self.unmeasured
        if self.guest is not None:
            epsilon = release_epsilon(self.guest["noise"], self.guest["releases"])
            plain["guest"] = {**self.guest, "release_epsilon": as_plain(epsilon), "delta": DELTA}
        return {**plain, "figures": [one.as_dict() for one in self.figures]}


def sentences(audit: PartyAudit) -> list[str]:
    """In short."""
    messages = sum(one["count"] for one in audit.wire["messages"])
    role = {"owner": "the owner"}.get(audit.wire["role"], f"a {audit.wire['role']}")
    told = [f"{audit.party} is {role}. It recorded {messages:,} messages."]
    if audit.back:
        told.append(f"{len(audit.back)} of them carried floating-point numbers to a guest, {audit.back[0]} first.")
    elif messages == 0:
        told.append("So nothing can be said of a backward channel: a recording of a whole run is needed.")
    else:
        told.append("None carried a floating-point number to a guest: there is no backward channel.")
    if audit.wire["unreadable"]:
        told.append(f"{audit.wire['unreadable']:,} could not be read, and were dropped by the party.")
    if audit.wire["damaged"]:
        told.append(f"Lines of the recording that were cut off or changed, and say nothing: {audit.wire['damaged']:,}.")
    if audit.wire["full_ms"] is not None:
        told.append("The recording was full before the end: counts are too low, but no sort of message is left out.")
    if audit.guest is not None:
        times, defence = audit.guest["releases"], _defence(audit.guest)
        told.append(f"Its encodings ({defence}) are sent {times} times of each row, and once more for a prediction.")
        if not audit.guest["earlier_releases_attacked"]:
            told.append("What it pushed before the last time was not attacked: to repeat its training takes too long.")
        if audit.guest["noise"]:
            told.append(f"What noise promises: {promise(audit.guest['noise'], times)}.")
    for one in _strongest(audit, "inversion"):
        told.append(
            f"A host that knows the columns of {one.known:,} of its people reconstructs {figure(one)} of the variance"
            f" of everybody else's ({one.way}){_beside(audit, one)}."
        )
    for one in _strongest(audit, "probing"):
        guess = next((f" (a guess: {figure(other)})" for other in audit.figures if other.control == "nothing seen"), "")
        told.append(f"Who has the hosts' encodings and {knew(one)} names {figure(one)} of all others{guess}.")
    if members := _strongest(audit, "membership"):
        best = max(members, key=lambda one: one.mean)
        told.append(
            f"Who sees predictions tells {pairs(best)} apart of one who was trained on and one who was not ({best.way};"
            " a guess: 50)."
        )
    if audit.unmeasured:
        told.append(f"Nothing else was measured: {audit.unmeasured}.")
    return told


def _strongest(audit: PartyAudit, attack: str) -> list[Measured]:
    """The way that does best, for every number of known rows."""
    own = strongest(one for one in audit.figures if one.attack == attack and not one.control)
    return sorted(own, key=lambda one: one.known)


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
            [one.attack, one.way, one.saw, knew(one), one.measure, figure(one), one.control] for one in audit.figures
        ]
        heads = ["attack", "way", "saw", "knew", "measure", "value", "instead of encodings"]
        tables.append(("Every figure", heads, rows))
    return tables
