"""Owner and guest know each other by their certificates, and nobody else can read or forge what they say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dvfl.federation.keys.authority import make_authority
from dvfl.federation.keys.credentials import write_credentials
from dvfl.federation.keys.sealing import Approach, Identity, Seal, identity, met
from dvfl.federation.protocol.messages import Role
from dvfl.federation.protocol.wire_types import BadMessage

NOW = datetime.now(UTC)
PARTIES: dict[str, Role] = {"owner": "owner", "guest-1": "guest", "guest-2": "guest", "host-1": "host"}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Identity]:
    return made(tmp_path_factory.mktemp("known"))


def made(root: Path) -> dict[str, Identity]:
    authority = make_authority("clinics", NOW)
    for party, role in PARTIES.items():
        write_credentials(root / party, authority, party=party, role=role, federation="clinics", days=30, now=NOW)
    return {party: identity(root / party, party, role, "clinics") for party, role in PARTIES.items()}


def met_by(known: dict[str, Identity], guest: str = "guest-1") -> tuple[Seal, Seal]:
    approach = Approach(known["owner"], guest, "s1")
    theirs, answer = met(known[guest], "owner", approach.introduce(), NOW)
    return approach.introduced(answer, NOW), theirs


def test_what_one_side_closes_the_other_opens(known: dict[str, Identity]) -> None:
    owner, guest = met_by(known)
    assert guest.open(owner.close(b"tags")) == b"tags" and owner.open(guest.close(b"slots")) == b"slots"


def test_what_was_changed_on_its_way_does_not_open(known: dict[str, Identity]) -> None:
    owner, guest = met_by(known)
    closed = bytearray(owner.close(b"tags"))
    closed[-1] ^= 1
    for content in (bytes(closed), closed[:20], b""):
        with pytest.raises(BadMessage, match="not sealed"):
            guest.open(bytes(content))


def test_another_guest_cannot_open_it(known: dict[str, Identity]) -> None:
    owner, _ = met_by(known, "guest-1")
    _, other = met_by(known, "guest-2")
    with pytest.raises(BadMessage, match="not sealed"):
        other.open(owner.close(b"tags"))


def test_a_guest_answers_nobody_but_the_owner(known: dict[str, Identity]) -> None:
    for party in ("guest-2", "host-1"):
        forged = Approach(known[party], "guest-1", "s1").introduce()
        with pytest.raises(BadMessage, match="does not show that it comes from owner"):
            met(known["guest-1"], "owner", forged, NOW)


def test_the_owner_believes_nobody_but_that_guest(known: dict[str, Identity]) -> None:
    approach = Approach(known["owner"], "guest-1", "s1")
    for party in ("guest-2", "host-1", "owner"):
        _, answer = met(known[party], "owner", approach.introduce(), NOW)
        with pytest.raises(BadMessage, match="does not show that it comes from guest-1"):
            approach.introduced(answer, NOW)


def test_an_answer_to_another_introduction_is_not_believed(known: dict[str, Identity]) -> None:
    first, second = (Approach(known["owner"], "guest-1", "s1") for _ in range(2))
    _, answer = met(known["guest-1"], "owner", first.introduce(), NOW)
    with pytest.raises(BadMessage, match="does not show"):
        second.introduced(answer, NOW)
    with pytest.raises(BadMessage, match="another session"):
        Approach(known["owner"], "guest-1", "s2").introduced(answer, NOW)


def test_a_host_cannot_put_its_own_key_in(known: dict[str, Identity]) -> None:
    introduction = Approach(known["owner"], "guest-1", "s1").introduce()
    own = Approach(known["host-1"], "guest-1", "s1").introduce()
    for forged in (replace(introduction, key=own.key), replace(own, certificate=introduction.certificate)):
        with pytest.raises(BadMessage, match="does not show"):
            met(known["guest-1"], "owner", forged, NOW)


def test_certificates_that_ended_or_are_of_another_authority_are_not_believed(
    known: dict[str, Identity], tmp_path: Path
) -> None:
    introduction = Approach(known["owner"], "guest-1", "s1").introduce()
    with pytest.raises(BadMessage, match="does not show"):
        met(known["guest-1"], "owner", introduction, NOW + timedelta(days=31))
    stranger = Approach(made(tmp_path)["owner"], "guest-1", "s1").introduce()
    with pytest.raises(BadMessage, match="does not show"):
        met(known["guest-1"], "owner", stranger, NOW)


@pytest.mark.parametrize("field", ["key", "certificate", "signature"])
@pytest.mark.parametrize("text", ["", "zz", "00", "🙂", "A" * 64])
def test_nonsense_in_an_introduction_is_refused(known: dict[str, Identity], field: str, text: str) -> None:
    introduction = replace(Approach(known["owner"], "guest-1", "s1").introduce(), **{field: text})
    with pytest.raises(BadMessage):
        met(known["guest-1"], "owner", introduction, NOW)
