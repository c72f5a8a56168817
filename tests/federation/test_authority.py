"""The authority: what it signs, for whom, and what it refuses."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.federation.keys.authority import Authority, Usage, issue, make_authority, make_key, make_request, names
from dvfl.federation.protocol.messages import Role

NOW = datetime(2030, 6, 1, tzinfo=UTC)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,62}", fullmatch=True)
AUTHORITY = make_authority("practice", NOW)
KEY = make_key()


def admit(
    request: bytes,
    party: str = "guest-1",
    role: Role = "guest",
    federation: str = "practice",
    usage: Usage = "client",
    authority: Authority = AUTHORITY,
    days: int = 90,
    now: datetime = NOW,
) -> x509.Certificate:
    return issue(request, authority, party=party, role=role, federation=federation, usage=usage, days=days, now=now)


def own_request(
    subject: list[x509.NameAttribute],
    wanted: list[x509.GeneralName],
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
) -> bytes:
    """A request that `make_request` would not make."""
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if wanted:
        request = request.add_extension(x509.SubjectAlternativeName(wanted), critical=False)
    return request.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def subject(party: str = "guest-1", role: str = "guest", federation: str = "practice") -> list[x509.NameAttribute]:
    fields = (
        (NameOID.ORGANIZATION_NAME, federation),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, role),
        (NameOID.COMMON_NAME, party),
    )
    return [x509.NameAttribute(kind, text) for kind, text in fields]


# What is issued.


@settings(max_examples=25)
@given(NAMES, NAMES)
def test_a_certificate_names_exactly_the_party_that_asked(party: str, federation: str) -> None:
    authority = make_authority(federation, NOW)
    certificate = admit(make_request(party, "guest", federation, KEY), party, "guest", federation, authority=authority)
    assert names(certificate) == [f"{party}.{federation}.dvfl"]
    assert certificate.public_key() == KEY.public_key()
    certificate.verify_directly_issued_by(authority.certificate)


@pytest.mark.parametrize(
    ("usage", "purpose"), [("client", ExtendedKeyUsageOID.CLIENT_AUTH), ("server", ExtendedKeyUsageOID.SERVER_AUTH)]
)
def test_a_certificate_serves_one_purpose_and_cannot_issue_others(usage: Usage, purpose: x509.ObjectIdentifier) -> None:
    certificate = admit(make_request("host-1", "host", "practice", KEY), "host-1", "host", usage=usage)
    extensions = certificate.extensions
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [purpose]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_the_authority_lasts_ten_years_and_no_certificate_longer() -> None:
    ends = AUTHORITY.certificate.not_valid_after_utc
    assert ends == NOW + timedelta(days=3650)
    request = make_request("guest-1", "guest", "practice", KEY)
    assert admit(request).not_valid_after_utc == NOW + timedelta(days=90)
    assert admit(request, days=9999).not_valid_after_utc == ends


def test_a_clock_that_is_a_little_behind_accepts_a_new_certificate() -> None:
    assert admit(make_request("guest-1", "guest", "practice", KEY)).not_valid_before_utc <= NOW - timedelta(minutes=30)


def test_two_authorities_of_one_name_are_not_the_same() -> None:
    other = make_authority("practice", NOW)
    certificate = admit(make_request("guest-1", "guest", "practice", KEY), authority=other)
    with pytest.raises(Exception):  # noqa: B017  the library's own kind does not matter
        certificate.verify_directly_issued_by(AUTHORITY.certificate)


# What is refused.


@pytest.mark.parametrize("role", ["guest", "owner"])
def test_only_a_host_gets_a_server_certificate(role: Role) -> None:
    with pytest.raises(UserError, match="only a host gets a server certificate"):
        admit(make_request("a", role, "practice", KEY), "a", role, usage="server")


def test_a_request_for_another_party_is_refused() -> None:
    with pytest.raises(UserError, match=r"asks for 'guest-2\.practice\.dvfl'; 'guest-1\.practice\.dvfl' is right"):
        admit(make_request("guest-2", "guest", "practice", KEY))


def test_a_request_for_another_federation_is_refused() -> None:
    with pytest.raises(UserError, match=r"asks for 'guest-1\.other\.dvfl'"):
        admit(make_request("guest-1", "guest", "other", KEY))


def test_a_request_for_another_role_is_refused() -> None:
    with pytest.raises(UserError, match="is not that of a guest"):
        admit(make_request("guest-1", "host", "practice", KEY))


@pytest.mark.parametrize(
    "wanted",
    [
        [],
        [x509.DNSName("guest-1.practice.dvfl"), x509.DNSName("guest-2.practice.dvfl")],
        [x509.DNSName("guest-1.practice.dvfl"), x509.RFC822Name("guest-2.practice.dvfl@example.org")],
        [x509.RFC822Name("guest-1.practice.dvfl")],
        [x509.UniformResourceIdentifier("guest-1.practice.dvfl")],
        [x509.DNSName("GUEST-1.practice.dvfl")],
        [x509.DNSName("*.practice.dvfl")],
    ],
)
def test_a_request_with_other_or_more_names_is_refused(wanted: list[x509.GeneralName]) -> None:
    with pytest.raises(UserError, match=r"'guest-1\.practice\.dvfl' is right"):
        admit(own_request(subject(), wanted, KEY))


def test_a_request_for_a_key_that_did_not_sign_it_is_refused() -> None:
    mine, theirs = (
        key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint) for key in (KEY, make_key())
    )
    request = x509.load_pem_x509_csr(make_request("guest-1", "guest", "practice", KEY)).public_bytes(Encoding.DER)
    assert request.count(mine) == 1
    changed = x509.load_der_x509_csr(request.replace(mine, theirs))
    with pytest.raises(UserError, match="not signed by the key it names"):
        admit(changed.public_bytes(Encoding.PEM))


def test_names_in_a_request_cannot_break_the_line_they_are_reported_in() -> None:
    request = own_request(subject(), [x509.DNSName("evil\n\x1b[31mguest-1 was admitted")], KEY)
    with pytest.raises(UserError) as caught:
        admit(request)
    assert str(caught.value).isprintable()


def test_a_key_of_another_kind_is_refused() -> None:
    name: list[x509.GeneralName] = [x509.DNSName("guest-1.practice.dvfl")]
    for key in (ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)):
        with pytest.raises(UserError, match="key of another kind; an ECDSA key on P-256 is right"):
            admit(own_request(subject(), name, key))


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_that_are_no_request_are_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(UserError, match=r"^the request for guest-1 .*is right$"):
        admit(data)


def test_a_huge_request_is_refused_before_it_is_read() -> None:
    with pytest.raises(UserError, match="has 1000000 bytes"):
        admit(b"x" * 1_000_000)


def test_an_authority_of_another_federation_does_not_sign() -> None:
    with pytest.raises(UserError, match=r"the authority is that of other\.dvfl, not of practice"):
        admit(make_request("guest-1", "guest", "practice", KEY), authority=make_authority("other", NOW))


def test_an_authority_that_has_ended_does_not_sign() -> None:
    with pytest.raises(UserError, match="the authority of practice ended on 2040"):
        admit(make_request("guest-1", "guest", "practice", KEY), now=NOW + timedelta(days=4000))
