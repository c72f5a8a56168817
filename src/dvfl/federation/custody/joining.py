"""A guest or host of a real federation: makes its keys where it lives, asks for certificates, and takes the answer."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from cryptography import x509

from dvfl.errors import UserError
from dvfl.federation.custody.enrolment import (
    Admission,
    Invitation,
    Request,
    check_address,
    read_admission,
    read_invitation,
    sign_request,
)
from dvfl.federation.custody.founding import check_fresh, write_federation, write_party, write_text_in
from dvfl.federation.keys.authority import Usage, make_key, make_request
from dvfl.federation.keys.credentials import (
    authority_path,
    certificate_path,
    key_path,
    read_key,
    write_certificate,
    write_key,
)
from dvfl.federation.party.configuration import read, written
from dvfl.federation.party.settings import (
    FEDERATION,
    INVITATION,
    PARTY,
    REQUEST,
    BrokerEntry,
    Federation,
    GuestData,
    GuestFile,
    HostFile,
    read_federation,
    role_of,
)
from dvfl.federation.protocol.wire_types import check_name
from dvfl.federation.tables.slots import find_slots
from dvfl.federation.tables.table import Values, survey_table
from dvfl.federation.transport.accounts import split_address


def join_as_guest(folder: Path, invitation: Path, party: str, data: GuestData, values: Values) -> Request:
    """Makes a guest's folder with keys of its own, and its request; the table says how many columns it brings."""
    asked = read_invitation(invitation)
    check_fresh(folder)
    check_name(party)
    table, slots = folder / data.table, folder / data.slots
    survey = survey_table(table, id_column=data.id, values=values, schema=None)
    if slots.exists():  # before alignment there are none
        find_slots(survey.ids, table, data.id, slots)
    request = Request(asked.federation, asked.fingerprint, party, "guest", "", columns=survey.width, values=values)
    return _write_joining(folder, asked, request, GuestFile(party, {}, data))


def join_as_host(folder: Path, invitation: Path, party: str, broker: BrokerEntry, address: str) -> Request:
    """Makes a host's folder with keys of its own, and its request; the others reach it at `address`."""
    asked = read_invitation(invitation)
    check_fresh(folder)
    check_name(party)
    check_address(address, "--address")
    if split_address(broker.listen) is None:
        raise UserError(f"--listen: cannot listen on '{broker.listen}'; such as 0.0.0.0:4222 is right")
    request = Request(asked.federation, asked.fingerprint, party, "host", "", "", address)
    return _write_joining(folder, asked, request, HostFile(party, broker))


def take(folder: Path, path: Path, *, now: datetime) -> Admission:
    """Applies an admission or removal in a guest's or host's folder: its certificates, and the newest federation."""
    if not (folder / INVITATION).exists():
        raise UserError(f"{folder} was not made by dvfl join; the folder of a guest or host that joined is right")
    admission = read_admission(path, read_invitation(folder / INVITATION))
    is_host = role_of(folder) == "host"
    file = read(HostFile, folder / PARTY) if is_host else read(GuestFile, folder / PARTY)
    _check_newer(folder, path, admission.federation)
    own = {usage: pem for usage, pem in _certificates(admission).items() if admission.party == file.party}
    if file.party not in admission.federation.guests and file.party not in admission.federation.hosts:
        if admission.party == file.party:
            raise UserError(f"{path}: {file.party} was taken out of the federation; ask the owner")
        raise UserError(f"{path} is the admission of {admission.party}; that of {file.party} is right")
    if not own and not certificate_path(folder, "client").exists():
        raise UserError(f"{path} is the admission of {admission.party}; that of {file.party} comes first")
    for usage, certificate in own.items():
        _check_own(folder, path, usage, certificate, now)
    for usage, certificate in own.items():
        write_certificate(certificate_path(folder, usage), certificate)
    if isinstance(file, GuestFile):
        write_party(folder, replace(file, hosts=admission.hosts))
    write_federation(folder, admission.federation)
    return admission


def _write_joining(folder: Path, invitation: Invitation, request: Request, file: GuestFile | HostFile) -> Request:
    keys = {usage: make_key() for usage in ("client", "server") if usage == "client" or request.role == "host"}
    pems = {
        usage: make_request(request.party, request.role, request.federation, key).decode()
        for usage, key in keys.items()
    }
    signed = sign_request(replace(request, client=pems["client"], server=pems.get("server")), keys["client"])
    write_text_in(folder, INVITATION, written(invitation))
    for usage, key in keys.items():
        write_key(key_path(folder, usage), key)
    write_certificate(authority_path(folder), invitation.certificate())
    write_party(folder, file)
    write_text_in(folder, REQUEST, written(signed))
    return signed


def _check_newer(folder: Path, path: Path, offered: Federation) -> None:
    if not (folder / FEDERATION).exists():
        return
    known = read_federation(folder)
    if offered.version < known.version:
        raise UserError(
            f"{path} has version {offered.version} of {FEDERATION}, and {folder} has {known.version} already;"
            " the newest from the owner is right"
        )
    if offered.version == known.version and offered.hash != known.hash:
        raise UserError(
            f"{path} has another {FEDERATION} than {folder}, both of version {known.version};"
            " the owner must add one to its version and send it again"
        )


def _certificates(admission: Admission) -> dict[Usage, x509.Certificate]:
    pems: dict[Usage, str | None] = {"client": admission.client, "server": admission.server}
    return {usage: x509.load_pem_x509_certificate(pem.encode()) for usage, pem in pems.items() if pem is not None}


def _check_own(folder: Path, path: Path, usage: Usage, certificate: x509.Certificate, now: datetime) -> None:
    key = key_path(folder, usage)
    if certificate.public_key() != read_key(key).public_key():
        raise UserError(f"{path} does not belong to {key}; send the owner {folder / REQUEST} and take its answer")
    if now > certificate.not_valid_after_utc:
        ended = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
        raise UserError(f"{path}: its certificates ended on {ended}; set the clock, or ask the owner for new ones")
