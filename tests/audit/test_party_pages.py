"""What people read of a party's audit."""

from typing import Any

import pytest

from dvfl.audit.party.party_pages import PartyAudit, markdown, sentences
from dvfl.audit.recordings.measured import Control, Measure, Measured

PLAIN = {"clip": None, "noise": 0.0, "flatten": False, "guest_objective": "reconstruction", "adversary": 0.0}
PLAIN["earlier_releases_attacked"] = True
PASSED = {"kind": "Hello", "direction": "sent", "other": "host", "count": 3, "bytes": 30, "floating": []}
WIRE = {"role": "guest", "messages": [PASSED], "unreadable": 0, "damaged": 0, "full_ms": None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "(no defence)"),
        ({"clip": 2.0, "noise": 0.1}, "(clipped to 2, noise 0.1 times that)"),
        (
            {"guest_objective": "simclr", "adversary": 0.5},
            "(learned by comparing altered copies, learned against a decoder, weight 0.5)",
        ),
        (
            {"clip": 2.0, "noise": 0.1, "flatten": True},
            "(all directions equally strong, clipped to 2, noise 0.1 times that)",
        ),
    ],
)
def test_the_page_names_every_defence_of_a_guest(change: dict[str, Any], words: str) -> None:
    audit = PartyAudit(party="guest-1", wire=WIRE, guest={**PLAIN, **change, "releases": 3}, back=[], figures=[])
    assert any(f"Its encodings {words} are sent 3 times" in sentence for sentence in sentences(audit))
    promised = [sentence for sentence in sentences(audit) if sentence.startswith("What noise promises: ")]
    assert len(promised) == ("noise" in change)


def test_the_page_says_where_earlier_pushes_were_not_looked_at() -> None:
    guest = {**PLAIN, "releases": 3, "earlier_releases_attacked": False}
    told = sentences(PartyAudit(party="guest-1", wire=WIRE, guest=guest, back=[], figures=[]))
    assert any("pushed before the last time was not attacked" in sentence for sentence in told)


def figure(attack: str, way: str, known: int, value: float, measure: Measure, control: Control = "") -> Measured:
    return Measured(attack, way, "", "", known, "labels of each class", "labels", measure, (value,), control)


def test_the_page_of_an_owner_tells_of_labels_and_of_who_was_trained_on() -> None:
    figures = [
        figure("probing", "one class", 0, 10.0, "balanced accuracy", "nothing seen"),
        figure("probing", "neighbours", 10, 71.25, "balanced accuracy"),
        figure("probing", "ridge", 10, 60.0, "balanced accuracy"),
        figure("membership", "confidence", 0, 0.51, "AUC"),
        figure("membership", "network", 5000, 0.53, "AUC"),
    ]
    audit = PartyAudit("owner", {**WIRE, "role": "owner"}, None, figures, [])
    labels, members = sentences(audit)[-2:]
    assert "10 labels of each class names 71.2" in labels and "(a guess: 10.0" in labels
    assert (
        "53 of 100 pairs" in members and "network" in members and sentences(audit)[0].startswith("owner is the owner.")
    )
    assert markdown(audit).count("| membership |") == 2


def test_the_page_says_why_there_are_no_figures() -> None:
    audit = PartyAudit("owner", {**WIRE, "role": "owner"}, None, [], [], "its head is not trained")
    assert sentences(audit)[-1] == "Nothing else was measured: its head is not trained."


def test_the_page_takes_nothing_for_proof_that_was_not_recorded() -> None:
    def told(**change: Any) -> str:
        return " ".join(sentences(PartyAudit("host-1", {**WIRE, "role": "host", **change}, None, [], [])))

    assert "there is no backward channel" in told() and "recording" not in told()
    assert "there is no backward channel" not in told(messages=[]) and "a whole run is needed" in told(messages=[])
    assert "cut off or changed, and say nothing: 2." in told(damaged=2)
    assert "counts are too low" in told(full_ms=1)
