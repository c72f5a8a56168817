"""Messages between owner and guest that the hosts between them carry and cannot read.

Both sides make a key for the session (X25519) and sign it with the key of their client certificate; the guest signs the
owner's with it. What follows is sealed with the two (XSalsa20 and Poly1305, by libsodium). A process keeps its key in
memory alone: one that was started again introduces itself anew, and what was recorded before stays closed.
"""

import base64
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey

from dvfl.federation.keys.authority import PURPOSES, dns_name, names, subject
from dvfl.federation.keys.credentials import authority_path, certificate_path, key_path, read_certificate, read_key
from dvfl.federation.protocol.messages import Introduce, Introduced, Role
from dvfl.federation.protocol.wire_types import BadMessage


class Identity(NamedTuple):
    """How a party shows who it is."""

    party: str
    role: Role
    federation: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    authority: x509.Certificate


def identity(folder: Path, party: str, role: Role, federation: str) -> Identity:
    """From the keys in a party's folder."""
    return Identity(
        party,
        role,
        federation,
        read_key(key_path(folder, "client")),
        read_certificate(certificate_path(folder, "client")),
        read_certificate(authority_path(folder)),
    )


class Seal:
    """Closes what goes to the other side, and opens what comes from there."""

    def __init__(self, own: PrivateKey, other: bytes) -> None:
        self._box = Box(own, PublicKey(other))

    def close(self, content: bytes) -> bytes:
        return bytes(self._box.encrypt(content))  # the nonce is drawn at random, of 24 bytes

    def open(self, content: bytes) -> bytes:
        try:
            return bytes(self._box.decrypt(content))
        except (CryptoError, ValueError) as error:
            raise BadMessage("not sealed by the one it should be from") from error


class Approach:
    """The owner's side of one introduction."""

    def __init__(self, own: Identity, guest: str, session: str) -> None:
        self._own, self._guest, self._session, self._key = own, guest, session, PrivateKey.generate()

    def introduce(self) -> Introduce:
        public = bytes(self._key.public_key)
        return Introduce(self._session, *_signed(self._own, public, _text(self._own, self._session, public)))

    def introduced(self, answer: Introduced, now: datetime) -> Seal:
        """Takes the guest's answer; BadMessage where it is not that guest's, to this very introduction."""
        if answer.session != self._session:
            raise BadMessage("of another session")
        key = _key(answer.key)
        _check(answer, self._guest, "guest", self._own, now, _text(self._own, self._session, _public(self._key)) + key)
        return Seal(self._key, key)


def met(own: Identity, owner: str, introduction: Introduce, now: datetime) -> tuple[Seal, Introduced]:
    """The guest's side: what it answers to the owner; BadMessage where it is not the owner who asks."""
    other = _key(introduction.key)
    words = _words(own.federation, owner, introduction.session) + other
    _check(introduction, owner, "owner", own, now, words)
    key = PrivateKey.generate()
    signed = _signed(own, _public(key), words + _public(key))
    return Seal(key, other), Introduced(introduction.session, *signed)


def _public(key: PrivateKey) -> bytes:
    return bytes(key.public_key)


def _words(federation: str, owner: str, session: str) -> bytes:
    return f"dvfl alignment|{federation}|{owner}|{session}|".encode()


def _text(owner: Identity, session: str, public: bytes) -> bytes:
    return _words(owner.federation, owner.party, session) + public


def _signed(own: Identity, public: bytes, words: bytes) -> tuple[str, str, str]:
    """Key, certificate and signature, as the messages carry them."""
    certificate = base64.b64encode(own.certificate.public_bytes(Encoding.DER)).decode()
    return public.hex(), certificate, own.key.sign(words, ec.ECDSA(hashes.SHA256())).hex()


def _key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError as error:
        raise BadMessage("key is not hexadecimal") from error
    if len(key) != PublicKey.SIZE:
        raise BadMessage("key is not of 32 bytes")
    return key


def _check(message: Introduce | Introduced, party: str, role: Role, own: Identity, now: datetime, words: bytes) -> None:
    """That the party who signed `words` is the one it should be, by a certificate of the federation's authority."""
    wrong = BadMessage(f"does not show that it comes from {party}")
    try:
        certificate = x509.load_der_x509_certificate(base64.b64decode(message.certificate, validate=True))
        certificate.verify_directly_issued_by(own.authority)
        purposes = list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        named = names(certificate) == [dns_name(party, own.federation)]
        right = certificate.subject == subject(party, own.federation, role)
        in_time = certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc
        public = certificate.public_key()
        if not (named and right and in_time and purposes == [PURPOSES["client"]]):
            raise wrong
        if not isinstance(public, ec.EllipticCurvePublicKey):
            raise wrong
        public.verify(bytes.fromhex(message.signature), words, ec.ECDSA(hashes.SHA256()))
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound) as error:
        raise wrong from error
