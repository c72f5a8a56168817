"""The owner as certificate authority: keys, requests and certificates that name the parties of one federation."""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from dvfl.errors import UserError
from dvfl.federation.protocol.messages import Role
from dvfl.federation.protocol.wire_types import check_name

Usage = Literal["client", "server"]

AUTHORITY_DAYS = 3650
PURPOSES: dict[Usage, ObjectIdentifier] = {
    "client": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server": ExtendedKeyUsageOID.SERVER_AUTH,
}
_SLACK = timedelta(hours=1)  # how far a party's clock may be behind the owner's when its certificate is new
_LARGEST_REQUEST = 16 * 1024  # bytes; ours have about 500


class Authority(NamedTuple):
    """What issues a federation's certificates. Only the owner has the key; everyone has the certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def dns_name(party: str, federation: str) -> str:
    """The name of a party in its certificates, wherever its machine stands."""
    check_name(party)
    return f"{party}.{authority_name(federation)}"


def authority_name(federation: str) -> str:
    """The name of a federation's authority in its own certificate."""
    check_name(federation)
    return f"{federation}.dvfl"


def make_key() -> ec.EllipticCurvePrivateKey:
    """A new key for TLS, on the curve that every TLS library has."""
    return ec.generate_private_key(ec.SECP256R1())


def make_authority(federation: str, now: datetime) -> Authority:
    """A new authority for a federation; its certificate is signed by itself."""
    key = make_key()
    about = subject("authority", federation)
    certificate = (
        _certificate(about, about, authority_name(federation), key.public_key())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(issues=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def make_request(party: str, role: Role, federation: str, key: ec.EllipticCurvePrivateKey) -> bytes:
    """What a party sends to the owner for a certificate, as PEM: its name, its role and its public key."""
    name = x509.SubjectAlternativeName([x509.DNSName(dns_name(party, federation))])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject(party, federation, role))
    return request.add_extension(name, critical=False).sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def issue(
    request: bytes,
    authority: Authority,
    *,
    party: str,
    role: Role,
    federation: str,
    usage: Usage,
    days: int,
    now: datetime,
) -> x509.Certificate:
    """The certificate for a request that asks for exactly the party and role that is admitted.

    Only the public key is taken from the request: whatever else it asks for is not granted.
    """
    if usage == "server" and role != "host":
        raise UserError(f"{party} is {role}; only a host gets a server certificate")
    if names(authority.certificate) != [authority_name(federation)]:
        raise UserError(f"the authority is that of {', '.join(names(authority.certificate))}, not of {federation}")
    ends = authority.certificate.not_valid_after_utc
    if now >= ends:
        raise UserError(f"the authority of {federation} ended on {ends:%Y-%m-%d}; a new federation is right")
    public = requested_key(request, party, role, federation)
    issuer = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        _certificate(
            subject(party, federation, role), authority.certificate.subject, dns_name(party, federation), public
        )
        .not_valid_before(now - _SLACK)
        .not_valid_after(min(now + timedelta(days=days), ends))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(issues=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([PURPOSES[usage]]), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
        .sign(authority.key, hashes.SHA256())
    )


def names(document: x509.Certificate | x509.CertificateSigningRequest) -> list[str]:
    """All names that a certificate or a request has, each as text."""
    try:
        found = document.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name.value if isinstance(name, x509.DNSName) else repr(name) for name in found]


def requested_key(request: bytes, party: str, role: Role, federation: str) -> ec.EllipticCurvePublicKey:
    """The public key of a request, once all that it says was found right; a request may come from anybody."""
    wrong = f"the request for {party}"
    if len(request) > _LARGEST_REQUEST:
        raise UserError(f"{wrong} has {len(request)} bytes; a certificate request made by `dvfl join` is right")
    try:
        read = x509.load_pem_x509_csr(request)
        signed, asked, public = read.is_signature_valid, names(read), read.public_key()
    except Exception as error:  # parsers of hostile bytes raise many kinds
        raise UserError(f"{wrong} is not a certificate request in PEM; one made by `dvfl join` is right") from error
    if not signed:
        raise UserError(f"{wrong} is not signed by the key it names; it was changed on its way")
    if asked != [dns_name(party, federation)]:
        shown = ascii(", ".join(asked))[:200]  # the sender's own words: no line ends or terminal codes from there
        raise UserError(f"{wrong} asks for {shown}; '{dns_name(party, federation)}' is right")
    if read.subject != subject(party, federation, role):
        raise UserError(f"{wrong} has the right name, but is not that of a {role}; the role in the federation is right")
    if not isinstance(public, ec.EllipticCurvePublicKey) or not isinstance(public.curve, ec.SECP256R1):
        raise UserError(f"{wrong} has a key of another kind; an ECDSA key on P-256 is right")
    return public


def _certificate(
    subject: x509.Name, issuer: x509.Name, name: str, public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def subject(party: str, federation: str, role: Role | None = None) -> x509.Name:
    """What a certificate says of its holder beside the name."""
    # The broker maps the DNS name to an account, but passes over certificates without a subject. A common name has at
    # most 64 characters, so the whole name does not always fit.
    fields = [(NameOID.ORGANIZATION_NAME, federation), (NameOID.ORGANIZATIONAL_UNIT_NAME, role)]
    parts = [x509.NameAttribute(kind, text) for kind, text in fields if text is not None]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, party)])


def _key_usage(*, issues: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not issues,
        key_cert_sign=issues,
        crl_sign=issues,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
