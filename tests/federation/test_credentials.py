"""Keys and certificates on disk: who can read them, and what is found wrong with them."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dvfl.errors import UserError
from dvfl.federation.keys.authority import Authority, Usage, make_authority, make_key
from dvfl.federation.keys.credentials import (
    authority_path,
    certificate_path,
    check_certificate,
    client_context,
    key_path,
    read_authority,
    read_key,
    read_plan_key,
    write_authority,
    write_credentials,
    write_key,
)
from dvfl.federation.protocol.messages import Role

NOW = datetime(2030, 6, 1, 12, 0, tzinfo=UTC)
AUTHORITY = make_authority("practice", NOW)


def equip(folder: Path, party: str = "host-1", role: Role = "host", authority: Authority = AUTHORITY) -> Path:
    write_credentials(folder, authority, party=party, role=role, federation="practice", days=90, now=NOW)
    return folder


def check(folder: Path, usage: Usage = "client", party: str = "host-1", now: datetime = NOW) -> None:
    certificate, key = certificate_path(folder, usage), key_path(folder, usage)
    check_certificate(
        certificate, key, authority_path(folder), party=party, federation="practice", usage=usage, now=now
    )


# Files.


def test_a_host_has_two_certificates_with_keys_of_their_own_and_others_have_one(tmp_path: Path) -> None:
    host, guest = equip(tmp_path / "host-1"), equip(tmp_path / "guest-1", "guest-1", "guest")
    assert {path.name for path in (host / "keys").iterdir()} == {"client.key", "client.pem", "server.key", "server.pem"}
    assert {path.name for path in (guest / "keys").iterdir()} == {"client.key", "client.pem"}
    assert read_key(key_path(host, "client")).public_key() != read_key(key_path(host, "server")).public_key()
    for usage in ("client", "server"):
        check(host, usage)
    check(guest, party="guest-1")


def test_nobody_else_can_read_a_private_key(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(mode=0o755)
    write_key(key_path(tmp_path, "plan"), Ed25519PrivateKey.generate())
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert key_path(tmp_path, "plan").stat().st_mode & 0o777 == 0o600


def test_a_key_that_replaces_a_readable_one_is_not_readable(tmp_path: Path) -> None:
    path = key_path(tmp_path, "client")
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o644)
    key = make_key()
    write_key(path, key)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["client.key"]
    assert read_key(path).private_numbers() == key.private_numbers()


def test_keys_and_authority_come_back_as_they_were_written(tmp_path: Path) -> None:
    plan = Ed25519PrivateKey.generate()
    write_key(key_path(tmp_path, "plan"), plan)
    write_authority(tmp_path, AUTHORITY)
    assert read_plan_key(key_path(tmp_path, "plan")).private_bytes_raw() == plan.private_bytes_raw()
    assert read_authority(tmp_path).certificate == AUTHORITY.certificate


def test_a_key_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    write_key(key_path(tmp_path, "plan"), Ed25519PrivateKey.generate())
    write_key(key_path(tmp_path, "client"), make_key())
    with pytest.raises(UserError, match=r"plan\.key is a key of another kind; an ECDSA key"):
        read_key(key_path(tmp_path, "plan"))
    with pytest.raises(UserError, match=r"client\.key is a key of another kind; an Ed25519 key"):
        read_plan_key(key_path(tmp_path, "client"))


def test_an_authority_with_the_key_of_another_is_refused(tmp_path: Path) -> None:
    write_authority(tmp_path, AUTHORITY)
    write_key(key_path(tmp_path, "authority"), make_key())
    with pytest.raises(UserError, match=r"authority\.key does not belong to .*authority\.pem"):
        read_authority(tmp_path)


# What can be wrong.


@pytest.mark.parametrize(
    ("now", "mend"),
    [
        (NOW - timedelta(days=1), "set the clock"),
        (NOW + timedelta(days=91), "set the clock, or ask the owner for a new one"),
    ],
)
def test_a_certificate_out_of_its_time_is_told_with_the_clock(tmp_path: Path, now: datetime, mend: str) -> None:
    with pytest.raises(UserError) as caught:
        check(equip(tmp_path), now=now)
    span = "valid from 2030-06-01 11:00 to 2030-08-30 12:00 UTC"
    clock = f"this machine's clock says {now:%Y-%m-%d} 12:00 UTC"
    assert str(caught.value) == f"{certificate_path(tmp_path, 'client')}: {span}, {clock}; {mend}"


def test_the_first_and_the_last_moment_are_in_time(tmp_path: Path) -> None:
    equip(tmp_path)
    check(tmp_path, now=NOW - timedelta(hours=1))
    check(tmp_path, now=NOW + timedelta(days=90))


def test_a_key_that_does_not_belong_to_the_certificate_is_found(tmp_path: Path) -> None:
    equip(tmp_path)
    write_key(key_path(tmp_path, "client"), make_key())
    with pytest.raises(UserError, match=r"client\.key does not belong to .*client\.pem"):
        check(tmp_path)
    with pytest.raises(UserError, match=r"client\.key does not belong to .*client\.pem"):
        client_context(tmp_path)


def test_the_certificate_of_another_party_is_found(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"names host-2\.practice\.dvfl; one for host-1\.practice\.dvfl is right"):
        check(equip(tmp_path, "host-2"))


def test_another_federation_is_found(tmp_path: Path) -> None:
    other = make_authority("other", NOW)
    write_credentials(tmp_path, other, party="host-1", role="host", federation="other", days=9, now=NOW)
    with pytest.raises(UserError, match=r"authority\.pem is of other\.dvfl; that of practice\.dvfl is right"):
        check(tmp_path)
    write_authority(tmp_path, AUTHORITY)
    with pytest.raises(UserError, match=r"client\.pem names host-1\.other\.dvfl"):
        check(tmp_path)


def test_a_certificate_of_another_authority_with_the_same_name_is_found(tmp_path: Path) -> None:
    equip(tmp_path, authority=make_authority("practice", NOW))
    write_authority(tmp_path, AUTHORITY)
    with pytest.raises(UserError, match=r"client\.pem was not issued by .*authority\.pem"):
        check(tmp_path)


def test_a_certificate_in_the_place_of_the_other_is_found(tmp_path: Path) -> None:
    equip(tmp_path)
    for name in ("server.key", "server.pem"):
        (tmp_path / "keys" / name).replace(tmp_path / "keys" / name.replace("server", "client"))
    with pytest.raises(UserError, match=r"client\.pem is not a client certificate"):
        check(tmp_path)


@pytest.mark.parametrize("name", ["client.key", "client.pem", "../authority.pem"])
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (Path.unlink, "is not there; `dvfl join`"),
        (lambda path: path.write_bytes(b"\x00\xff"), "is not a .* in PEM"),
        (lambda path: (path.unlink(), path.mkdir()), r"cannot be read \(Is a directory\)"),
    ],
)
@pytest.mark.parametrize("use", [check, client_context])
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, name: str, spoil: Callable[[Path], object], told: str, use: Callable[[Path], object]
) -> None:
    spoil(equip(tmp_path) / "keys" / name)
    with pytest.raises(UserError, match=rf"{Path(name).name} {told}"):
        use(tmp_path)


# Connections.


def shake_hands(server: Path, client: Path, name: str) -> None:
    """TLS between two parties' folders, without a network."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate_path(server, "server"), key_path(server, "server"))
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client_context(client).wrap_bio(back, there, server_hostname=name),
        serving.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].version() == "TLSv1.3"


@pytest.mark.parametrize("party", ["host-1", "h", "host-", "a--b", "xn--abc", "h" * 63])
def test_a_client_knows_a_host_by_whatever_name_it_has(tmp_path: Path, party: str) -> None:
    now = datetime.now(UTC)
    for federation in ("practice", "f" * 63):
        write_credentials(
            tmp_path,
            make_authority(federation, now),
            party=party,
            role="host",
            federation=federation,
            days=1,
            now=now,
        )
        shake_hands(tmp_path, tmp_path, f"{party}.{federation}.dvfl")
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            shake_hands(tmp_path, tmp_path, f"other.{federation}.dvfl")
