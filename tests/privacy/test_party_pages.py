"""What people read of a party's audit."""

from typing import Any

import pytest

from dvfl.privacy.party_pages import PartyAudit, sentences

PLAIN = {"clip": None, "noise": 0.0, "flatten": False, "guest_objective": "reconstruction", "adversary": 0.0}
WIRE = {"role": "guest", "messages": [], "unreadable": 0}


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
