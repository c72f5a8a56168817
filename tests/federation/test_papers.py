"""Invitation, request and admission: whole, without secrets, and refused when anything in them was changed."""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from clinics import Clinics
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.federation.custody.enrolment import (
    check_address,
    make_invitation,
    read_admission,
    read_invitation,
    read_request,
    shown,
)
from dvfl.federation.keys.credentials import key_path, read_key, read_plan_key
from dvfl.federation.party.configuration import written
from dvfl.federation.party.settings import REQUEST

READ: dict[str, Callable[[Path, Clinics], Any]] = {
    "invitation": lambda path, clinics: read_invitation(path),
    "guest's request": lambda path, clinics: read_request(path),
    "host's request": lambda path, clinics: read_request(path),
    "admission": lambda path, clinics: read_admission(path, read_invitation(clinics.invitation)),
}


@pytest.fixture(scope="module")
def clinics(tmp_path_factory: pytest.TempPathFactory) -> Clinics:
    made = Clinics(tmp_path_factory.mktemp("clinics")).create()
    made.enter("guest-1")
    made.enter("host-1")
    return made


def paper(clinics: Clinics, name: str) -> Path:
    return {
        "invitation": clinics.invitation,
        "guest's request": clinics.folder("guest-1") / REQUEST,
        "host's request": clinics.folder("host-1") / REQUEST,
        "admission": clinics.owner / "admission-host-1.toml",
    }[name]


def believed(name: str, read: Any) -> Any:
    """What a reader goes by; a signature may be written in several ways."""
    if name == "invitation":
        return read.federation, read.plan_key, read.fingerprint, read.certificate()
    return replace(read, signature="")


@pytest.mark.parametrize("name", READ)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_changed_character_is_refused_or_changes_nothing(
    name: str, clinics: Clinics, tmp_path: Path, data: st.DataObject
) -> None:
    text = paper(clinics, name).read_text()
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.sampled_from('aZ07-"=[\n .é')) + text[at + 1 :]
    (tmp_path / "changed.toml").write_text(changed)
    try:
        read = READ[name](tmp_path / "changed.toml", clinics)
    except UserError:
        return
    assert believed(name, read) == believed(name, READ[name](paper(clinics, name), clinics))


@pytest.mark.parametrize("name", READ)
def test_the_line_ends_of_another_system_do_no_harm(name: str, clinics: Clinics, tmp_path: Path) -> None:
    path = tmp_path / "mailed.toml"
    path.write_bytes(paper(clinics, name).read_bytes().replace(b"\n", b"\r\n"))
    assert READ[name](path, clinics) == READ[name](paper(clinics, name), clinics)


@pytest.mark.parametrize("name", READ)
def test_no_paper_holds_a_private_key(name: str, clinics: Clinics) -> None:
    text = paper(clinics, name).read_text()
    keys: list[Any] = [read_key(key_path(clinics.folder("host-1"), usage)) for usage in ("client", "server")]
    keys += [read_key(key_path(clinics.folder("guest-1"), "client")), read_key(key_path(clinics.owner, "authority"))]
    keys.append(read_plan_key(key_path(clinics.owner, "plan")))
    assert "PRIVATE" not in text
    for key in keys:
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        assert not any(line in text for line in pem.splitlines()[1:-1])


@pytest.mark.parametrize("name", ["guest's request", "host's request"])
def test_every_field_of_a_request_is_signed(name: str, clinics: Clinics, tmp_path: Path) -> None:
    request = read_request(paper(clinics, name))
    other = read_request(paper(clinics, "guest's request" if name.startswith("host") else "host's request"))
    for field in fields(request):
        mine, theirs = getattr(request, field.name), getattr(other, field.name)
        if mine == theirs:
            theirs = {"federation": "others", "invitation": "0" * 64}[field.name]
        path = tmp_path / "request.toml"
        path.write_text(written(replace(request, **{field.name: theirs})))
        with pytest.raises(UserError):
            read_request(path)


def test_an_invitation_with_another_key_of_the_owner_has_another_fingerprint(clinics: Clinics) -> None:
    invitation = read_invitation(clinics.invitation)
    other = make_invitation(invitation.federation, "0" * 64, invitation.certificate())
    assert other.fingerprint != invitation.fingerprint


def test_a_request_signed_anew_by_another_has_another_fingerprint(clinics: Clinics, tmp_path: Path) -> None:
    forger = Clinics(tmp_path)
    forger.owner.mkdir(parents=True)
    forger.invitation.write_bytes(clinics.invitation.read_bytes())
    assert forger.join("guest-1").fingerprint != read_request(paper(clinics, "guest's request")).fingerprint


@pytest.mark.parametrize("address", ["host.example.org:4222", "10.0.0.5:1", "[2001:db8::1]:4222"])
def test_an_address_that_can_be_dialled(address: str) -> None:
    check_address(address, "here")


@pytest.mark.parametrize(
    "address", ["", "host", "host:0", "host:65536", ":4222", "0.0.0.0:4222", "[::]:4222", "a b:1", "h\x1b[2J:1", "h:x"]
)
def test_an_address_that_nobody_can_dial_is_named_in_one_safe_line(address: str) -> None:
    with pytest.raises(UserError, match="cannot be dialled") as caught:
        check_address(address, "request.toml")
    assert str(caught.value).isprintable()


def test_a_fingerprint_is_shown_in_groups_of_four() -> None:
    assert shown("0123456789ab") == "0123 4567 89ab"
