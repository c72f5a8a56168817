"""What owner and parties send each other before they have a line: invitation, request and admission, as TOML files.

None holds a secret. Invitation and request are believed once their fingerprints were compared by another way, such as
the telephone; an admission is signed with the owner's key that the invitation names.
"""

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from dvfl.errors import UserError
from dvfl.federation.keys.authority import authority_name, names, requested_key
from dvfl.federation.party.configuration import read
from dvfl.federation.party.settings import Federation
from dvfl.federation.protocol.plan_fields import canonical
from dvfl.federation.protocol.wire_types import check_name
from dvfl.federation.tables.table import Values
from dvfl.federation.transport.accounts import split_address

JoiningRole = Literal["guest", "host"]
_MOST_COLUMNS = 2**31 - 1
_ECDSA = ec.ECDSA(hashes.SHA256())


@dataclass(frozen=True)
class Invitation:
    """Owner to everyone: which federation it is, and by what its owner is known."""

    federation: str
    plan_key: str  # 64 hexadecimal digits
    authority: str  # its certificate, PEM
    fingerprint: str  # of all of the above

    def owner_key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.plan_key))

    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.authority.encode())


@dataclass(frozen=True)
class Request:
    """Party to owner: who wants in, with which keys, and what all others must know of it."""

    federation: str
    invitation: str  # the fingerprint of the one that it answers
    party: str
    role: JoiningRole
    client: str  # certificate request, PEM
    server: str | None = None  # likewise; a host's
    address: str | None = None  # where others reach a host, address:port
    columns: int | None = None  # a guest's, once its table is numbers
    values: Values | None = None
    signature: str = ""  # of all of the above, with the key of `client`

    @property
    def fingerprint(self) -> str:
        """Of all of it but the signature, which may differ each time it is made."""
        return _digest(_covered(self))


@dataclass(frozen=True)
class Admission:
    """Owner to everyone: the federation as it is now; and to one party its certificates, where it was admitted."""

    party: str  # who was admitted, or taken out
    invitation: str  # the fingerprint of the federation's
    hosts: dict[str, str]  # where each is reached
    federation: Federation
    client: str | None = None  # certificate, PEM
    server: str | None = None
    signature: str = ""  # of all of the above, with the owner's plan key


def make_invitation(federation: str, plan_key: str, authority: x509.Certificate) -> Invitation:
    """The invitation to a new federation."""
    invitation = Invitation(federation, plan_key, authority.public_bytes(Encoding.PEM).decode(), "")
    return replace(invitation, fingerprint=_of_invitation(invitation))


def read_invitation(path: Path) -> Invitation:
    """The invitation in a file, found whole; whether it is the owner's is for its reader to ask the owner."""
    invitation = read(Invitation, path)
    try:
        invitation.owner_key()
        named, whole = names(invitation.certificate()), _of_invitation(invitation) == invitation.fingerprint
    except Exception as error:  # parsers of damaged bytes raise many kinds
        raise UserError(f"{path}: damaged on its way; ask the owner for it once more") from error
    if not whole or named != [authority_name(invitation.federation)]:
        raise UserError(f"{path}: altered on its way; ask the owner for it once more")
    return invitation


def sign_request(unsigned: Request, key: ec.EllipticCurvePrivateKey) -> Request:
    """The request with the signature of its client key."""
    return replace(unsigned, signature=key.sign(_covered(unsigned), _ECDSA).hex())


def read_request(path: Path) -> Request:
    """The request in a file, once all that it says was found right; it may come from anybody."""
    request = read(Request, path)
    check_name(request.party)
    keys = [
        requested_key(pem.encode(), request.party, request.role, request.federation)
        for pem in (request.client, request.server)
        if pem is not None
    ]
    try:
        keys[0].verify(bytes.fromhex(request.signature), _covered(request), _ECDSA)
    except (InvalidSignature, ValueError):
        raise UserError(f"{path}: altered on its way; ask {request.party} for its request once more") from None
    _check_contents(request, path)
    return request


def sign_admission(unsigned: Admission, key: Ed25519PrivateKey) -> Admission:
    """The owner's word for it."""
    return replace(unsigned, signature=key.sign(_covered(unsigned)).hex())


def read_admission(path: Path, invitation: Invitation) -> Admission:
    """The admission in a file, if the owner who sent that invitation signed it."""
    admission = read(Admission, path)
    if admission.invitation != invitation.fingerprint or admission.federation.plan_key != invitation.plan_key:
        raise UserError(
            f"{path} is of another federation than this folder's invitation ({invitation.federation},"
            f" {shown(invitation.fingerprint)[:19]} ..); one from the same owner is right"
        )
    try:
        invitation.owner_key().verify(bytes.fromhex(admission.signature), _covered(admission))
    except (InvalidSignature, ValueError):
        raise UserError(f"{path}: altered on its way; ask the owner for it once more") from None
    return admission


def check_address(address: str, where: str) -> None:
    """Raises unless others could dial there."""
    parts = split_address(address)
    if parts is None or not address.isprintable() or parts[0] in ("0.0.0.0", "::"):
        raise UserError(
            f"{where}: {address[:200]!a} cannot be dialled;"
            " an address and a port such as host.example.org:4222 is right"
        )


def shown(fingerprint: str) -> str:
    """A fingerprint as people read it to each other."""
    return " ".join(fingerprint[at : at + 4] for at in range(0, len(fingerprint), 4))


def _check_contents(request: Request, path: Path) -> None:
    fields = {"guest": (request.columns, request.values), "host": (request.server, request.address)}
    if None in fields.pop(request.role) or set(*fields.values()) != {None}:
        raise UserError(f"{path}: not what a {request.role} asks for; a request made by `dvfl join` is right")
    if request.columns is not None and not 1 <= request.columns <= _MOST_COLUMNS:
        raise UserError(f"{path}: columns = {request.columns}; from 1 to {_MOST_COLUMNS} is right")
    if request.address is not None:
        check_address(request.address, str(path))


def _covered(paper: Request | Admission) -> bytes:
    """What a signature covers; the words in front keep it from being taken for anything else that its key signs."""
    plain: dict[str, Any] = {name: value for name, value in asdict(paper).items() if name != "signature"}
    return f"dvfl {type(paper).__name__.lower()}, version 1\n".encode() + canonical(plain)


def _of_invitation(invitation: Invitation) -> str:
    authority = invitation.certificate().public_bytes(Encoding.DER)
    plain = {
        "federation": invitation.federation,
        "plan_key": invitation.plan_key,
        "authority": hashlib.sha256(authority).hexdigest(),
    }
    return _digest(b"dvfl invitation, version 1\n" + canonical(plain))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
