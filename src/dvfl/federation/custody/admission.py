"""The owner of a real federation: makes it, admits those who ask, takes them out. No key of another ever comes here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from dvfl.errors import UserError, nearest
from dvfl.federation.custody.enrolment import Admission, Invitation, Request, make_invitation, sign_admission
from dvfl.federation.custody.founding import OWNER, check_fresh, write_federation, write_party, write_text_in
from dvfl.federation.keys.authority import AUTHORITY_DAYS, Usage, issue, make_authority
from dvfl.federation.keys.credentials import (
    authority_path,
    key_path,
    read_authority,
    read_certificate,
    read_plan_key,
    write_authority,
    write_credentials,
    write_key,
)
from dvfl.federation.party.configuration import read, written
from dvfl.federation.party.settings import (
    FEDERATION,
    INVITATION,
    PARTY,
    Alignment,
    Federation,
    GuestEntry,
    OwnerData,
    OwnerFile,
    OwnerHead,
    Training,
    read_federation,
)
from dvfl.federation.party.storage import saved_values

_ADMITTED = "admitted"  # the owner's folder of the requests of all who were ever admitted
_DAYS = 397  # of a guest's or host's certificate: a year, and a month in which to renew it

# What a preset makes of the numbers of columns of all guests: `w_g` and `w_h`, None for the sizing rule's own.
Widths = Callable[[Sequence[int]], tuple[int | None, int | None]]


@dataclass(frozen=True)
class Changed:
    """What the owner must send, and to whom."""

    file: Path
    version: int
    others: tuple[str, ...]  # parties whose federation.toml is older now
    begun: bool  # a run is under way, and goes on as it was planned


def create(
    folder: Path,
    name: str,
    training: Training,
    head: OwnerHead,
    data: OwnerData,
    about: Mapping[str, str],
    alignment: Alignment,
    *,
    now: datetime,
) -> Invitation:
    """Makes the owner's folder: all its keys, and a federation without guests and hosts."""
    check_fresh(folder)
    authority, plan_key = make_authority(name, now), Ed25519PrivateKey.generate()
    public = plan_key.public_key().public_bytes_raw().hex()
    invitation = make_invitation(name, public, authority.certificate)
    write_text_in(folder, INVITATION, written(invitation))
    write_authority(folder, authority)
    write_key(key_path(folder, "plan"), plan_key)
    # As long as the authority's: whoever has this folder could make another at any time.
    write_credentials(folder, authority, party=OWNER, role="owner", federation=name, days=AUTHORITY_DAYS, now=now)
    write_federation(folder, Federation(name, OWNER, public, (), {}, training, alignment=alignment))
    write_party(folder, OwnerFile(OWNER, {}, head, data=data, about=dict(about)))
    return invitation


def owned(folder: Path) -> tuple[Federation, OwnerFile]:
    """The federation, and the owner's own file; raises where the folder is another party's."""
    if not key_path(folder, "authority").exists():
        raise UserError(f"{folder} is not the folder of an owner; one made by dvfl federation create is right")
    return read_federation(folder), read(OwnerFile, folder / PARTY)


def check_request(folder: Path, request: Request, *, replacing: bool) -> None:
    """Raises unless the owner may admit it: it is of this federation, and its name is free or its own."""
    (federation, _), party = owned(folder), request.party
    if request.invitation != _invitation(folder, federation).fingerprint:
        raise UserError(f"the request of {party} answers another invitation; that of {federation.name} is right")
    before = _admitted(folder, party)
    there = party in federation.guests or party in federation.hosts
    if before is None:
        if there or party == federation.owner:
            raise UserError(f"{party} is in {FEDERATION} already; another name is right")
        return
    if before.client == request.client:
        return
    if not there:
        # The certificate that it had names it still, and would open the doors of whoever has that name.
        raise UserError(f"{party} was taken out of the federation; its name is not used again: another name is right")
    if not replacing or before.role != request.role:
        raise UserError(
            f"{party} was admitted with another key; another name is right, or --replace if its {before.role} lost"
            " the old key and nobody else has it"
        )


def admit(folder: Path, request: Request, widths: Widths, *, now: datetime) -> Changed:
    """Issues the certificates, enters the party, and writes its admission. The same request again renews them."""
    federation, owner = owned(folder)
    authority = read_authority(folder)
    asked: dict[Usage, str | None] = {"client": request.client, "server": request.server}
    certificates = {
        usage: issue(
            pem.encode(),
            authority,
            party=request.party,
            role=request.role,
            federation=federation.name,
            usage=usage,
            days=_DAYS,
            now=now,
        )
        for usage, pem in asked.items()
        if pem is not None
    }
    if request.role == "guest":
        assert request.columns is not None and request.values is not None
        guests = {**federation.guests, request.party: GuestEntry(request.columns, request.values)}
        changed = _with_guests(federation, guests, widths)
    else:
        assert request.address is not None
        changed = replace(federation, hosts=tuple(dict.fromkeys((*federation.hosts, request.party))))
        # A host may have moved since it asked; the owner's own file then has its new address.
        moved = owner.hosts.get(request.party) if _admitted(folder, request.party) == request else None
        owner = replace(owner, hosts={**owner.hosts, request.party: moved or request.address})
    write_text_in(folder / _ADMITTED, f"{request.party}.toml", written(request))
    pems = {usage: one.public_bytes(Encoding.PEM).decode() for usage, one in certificates.items()}
    paper = Admission(request.party, "", owner.hosts, changed, pems["client"], pems.get("server"))
    return _publish(folder, federation, owner, paper, f"admission-{request.party}.toml")


def remove(folder: Path, party: str, widths: Widths) -> Changed:
    """Takes a party out; hosts that take the new file cut it off."""
    federation, owner = owned(folder)
    if party in federation.guests:
        guests = {name: entry for name, entry in federation.guests.items() if name != party}
        changed = _with_guests(federation, guests, widths)
    elif party in federation.hosts:
        changed = replace(federation, hosts=tuple(host for host in federation.hosts if host != party))
        owner = replace(owner, hosts={host: at for host, at in owner.hosts.items() if host != party})
    else:
        known = [*federation.guests, *federation.hosts]
        raise UserError(f"{folder / FEDERATION}: there is no guest or host '{party}'{nearest(party, known)}")
    paper = Admission(party, "", owner.hosts, changed)
    return _publish(folder, federation, owner, paper, f"removal-{party}.toml")


def _admitted(folder: Path, party: str) -> Request | None:
    """The request with which a party was last admitted."""
    path = folder / _ADMITTED / f"{party}.toml"
    return read(Request, path) if path.exists() else None


def _invitation(folder: Path, federation: Federation) -> Invitation:
    return make_invitation(federation.name, federation.plan_key, read_certificate(authority_path(folder)))


def _with_guests(federation: Federation, guests: dict[str, GuestEntry], widths: Widths) -> Federation:
    """With other guests, and the preset's widths for them unless the owner has chosen others."""
    before, after = ([guest.columns for guest in some.values()] for some in (federation.guests, guests))
    training = federation.training
    if (training.w_g, training.w_h) == widths(before):
        w_g, w_h = widths(after)
        training = replace(training, w_g=w_g, w_h=w_h)
    return replace(federation, guests=guests, training=training)


def _publish(folder: Path, before: Federation, owner: OwnerFile, paper: Admission, name: str) -> Changed:
    """Writes the owner's own files and the paper for the others, which is signed."""
    same = paper.federation == before
    federation = replace(paper.federation, version=before.version if same else before.version + 1)
    invitation = _invitation(folder, federation)
    signed = sign_admission(
        replace(paper, invitation=invitation.fingerprint, federation=federation),
        read_plan_key(key_path(folder, "plan")),
    )
    write_party(folder, owner)
    write_federation(folder, federation)
    write_text_in(folder, name, written(signed))
    others = () if same else (*before.guests, *before.hosts)
    begun = saved_values(folder / "state") is not None
    return Changed(folder / name, federation.version, tuple(one for one in others if one != paper.party), begun)
