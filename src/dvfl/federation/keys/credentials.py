"""A party's keys and certificates on disk, whether they are in order, and how they open a connection.

A party's folder has `authority.pem` and, open to nobody else, `keys/` with `client.key` and `client.pem`. A host has
`server.key` and `server.pem` beside them; the owner has `authority.key` and, to sign plans, `plan.key`.
"""

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from dvfl.errors import UserError
from dvfl.federation.keys.authority import (
    PURPOSES,
    Authority,
    Usage,
    authority_name,
    dns_name,
    issue,
    make_key,
    make_request,
    names,
)
from dvfl.federation.protocol.messages import Role
from dvfl.files import write_bytes


def authority_path(folder: Path) -> Path:
    """Where a party keeps the certificate of its federation's authority."""
    return folder / "authority.pem"


def key_path(folder: Path, name: str) -> Path:
    """Where a party keeps a private key: `client`, `server`, `authority` or `plan`."""
    return folder / "keys" / f"{name}.key"


def certificate_path(folder: Path, usage: Usage) -> Path:
    """Where a party keeps a certificate of its own."""
    return folder / "keys" / f"{usage}.pem"


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey) -> None:
    """Writes a private key that nobody else can read, into a folder that nobody else can enter."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    write_bytes(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), private=True)


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key for TLS in a file."""
    key = _private_key(path)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UserError(f"{path} is a key of another kind; an ECDSA key on P-256 is right")
    return key


def read_plan_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file that signs plans."""
    key = _private_key(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(f"{path} is a key of another kind; an Ed25519 key is right")
    return key


def write_certificate(path: Path, certificate: x509.Certificate) -> None:
    """Writes a certificate as PEM."""
    write_bytes(path, certificate.public_bytes(Encoding.PEM))


def read_certificate(path: Path) -> x509.Certificate:
    """The certificate in a PEM file."""
    try:
        return x509.load_pem_x509_certificate(_content(path))
    except ValueError as error:
        raise UserError(f"{path} is not a certificate in PEM") from error


def write_authority(folder: Path, authority: Authority) -> None:
    """Stores a new authority in the owner's folder."""
    write_key(key_path(folder, "authority"), authority.key)
    write_certificate(authority_path(folder), authority.certificate)


def read_authority(folder: Path) -> Authority:
    """The authority in the owner's folder."""
    key = read_key(key_path(folder, "authority"))
    certificate = read_certificate(authority_path(folder))
    _belongs(key, key_path(folder, "authority"), certificate, authority_path(folder))
    return Authority(key, certificate)


def write_credentials(
    folder: Path, authority: Authority, *, party: str, role: Role, federation: str, days: int, now: datetime
) -> None:
    """Makes all keys and certificates of one party here, where the authority is: for practice."""
    usages: tuple[Usage, ...] = ("client", "server") if role == "host" else ("client",)
    for usage in usages:
        key = make_key()
        request = make_request(party, role, federation, key)
        certificate = issue(
            request, authority, party=party, role=role, federation=federation, usage=usage, days=days, now=now
        )
        write_key(key_path(folder, usage), key)
        write_certificate(certificate_path(folder, usage), certificate)
    write_certificate(authority_path(folder), authority.certificate)


def check_certificate(
    path: Path, key: Path, authority: Path, *, party: str, federation: str, usage: Usage, now: datetime
) -> None:
    """Raises, in one line, for whatever would make the others refuse this certificate."""
    issuer, certificate = read_certificate(authority), read_certificate(path)
    if names(issuer) != [authority_name(federation)]:
        raise UserError(f"{authority} is of {_listed(issuer)}; that of {authority_name(federation)} is right")
    if names(certificate) != [dns_name(party, federation)]:
        raise UserError(f"{path} names {_listed(certificate)}; one for {dns_name(party, federation)} is right")
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise UserError(f"{path} was not issued by {authority}; both from one owner are right") from error
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if list(purposes) != [PURPOSES[usage]]:
        raise UserError(f"{path} is not a {usage} certificate; client and server certificates are not exchangeable")
    _belongs(read_key(key), key, certificate, path)
    _in_time(certificate, path, now)
    _in_time(issuer, authority, now)


def check_client_keys(folder: Path, party: str, federation: str) -> None:
    """The same of what a party's folder has to open connections with, today."""
    check_certificate(
        certificate_path(folder, "client"),
        key_path(folder, "client"),
        authority_path(folder),
        party=party,
        federation=federation,
        usage="client",
        now=datetime.now(UTC),
    )


def client_context(folder: Path) -> ssl.SSLContext:
    """TLS as a party speaks it: with its own certificate, and trust in its federation's authority alone."""
    certificate, key, authority = certificate_path(folder, "client"), key_path(folder, "client"), authority_path(folder)
    _belongs(read_key(key), key, read_certificate(certificate), certificate)
    read_certificate(authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(authority)
    context.load_cert_chain(certificate, key)
    return context


def client_options(folder: Path, host: str, federation: str) -> dict[str, Any]:
    """What `nats.connect` needs to reach the broker of `host`, and no other, at whatever address."""
    return {
        "tls": client_context(folder),
        "tls_hostname": dns_name(host, federation),
        # Otherwise the server's first line comes in plain text, and nats-py does without TLS where that line says so.
        "tls_handshake_first": True,
    }


def _private_key(path: Path) -> object:
    try:
        return load_pem_private_key(_content(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UserError(f"{path} is not a private key in PEM without a password") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UserError(f"{path} is not there; `dvfl join` and the owner's `dvfl admit` make it") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error


def _belongs(key: ec.EllipticCurvePrivateKey, key_file: Path, certificate: x509.Certificate, file: Path) -> None:
    if certificate.public_key() != key.public_key():
        raise UserError(f"{key_file} does not belong to {file}; the key whose request the owner admitted is right")


def _in_time(certificate: x509.Certificate, path: Path, now: datetime) -> None:
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first <= now <= last:
        mend = "set the clock, or ask the owner for a new one" if now > last else "set the clock"
        raise UserError(
            f"{path}: valid from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC, "
            f"this machine's clock says {now:%Y-%m-%d %H:%M} UTC; {mend}"
        )


def _listed(certificate: x509.Certificate) -> str:
    return ", ".join(names(certificate)) or "nobody"
