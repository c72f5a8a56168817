"""Points of Curve25519 in Edwards form (its prime-order group), packed 32 bytes each; the arithmetic is libsodium's."""

import hashlib
from collections.abc import Sequence

from nacl import bindings
from nacl.exceptions import CryptoError

from dvfl.align.union.spreading import spread

POINT = 32  # bytes
_PERSON = b"dvfl id"  # keeps these hashes apart from all others with the same salt


class BadPoint(Exception):
    """Bytes that are no points of the group."""


def hashed(ids: Sequence[bytes], salt: bytes, threads: int = 1) -> bytes:
    """The points of ids: keyed BLAKE2b, then libsodium's map to the curve."""

    def point(one: bytes) -> bytes:
        return bindings.crypto_core_ed25519_from_uniform(
            hashlib.blake2b(one, digest_size=POINT, key=salt, person=_PERSON).digest()
        )

    return b"".join(spread(lambda start, stop: b"".join(map(point, ids[start:stop])), len(ids), threads))


def multiplied(points: bytes, scalar: bytes, threads: int = 1) -> bytes:
    """Every point times the scalar. libsodium refuses what is not in the group, and calls to it run side by side."""
    if len(points) % POINT:
        raise BadPoint(f"{len(points)} bytes are no whole number of points")

    def part(start: int, stop: int) -> bytes:
        places = range(start * POINT, stop * POINT, POINT)
        return b"".join(
            [bindings.crypto_scalarmult_ed25519_noclamp(scalar, points[place : place + POINT]) for place in places]
        )

    try:
        return b"".join(spread(part, len(points) // POINT, threads))
    except CryptoError as error:
        raise BadPoint("bytes that are no points of the group") from error


def are_points(points: bytes) -> bool:
    """Whether all are in the group."""
    places = range(0, len(points), POINT)
    return len(points) % POINT == 0 and all(
        bindings.crypto_core_ed25519_is_valid_point(points[place : place + POINT]) for place in places
    )


def scalar(random64: bytes) -> bytes:
    """A scalar from 64 random bytes."""
    return bindings.crypto_core_ed25519_scalar_reduce(random64)


def inverse(of: bytes) -> bytes:
    """What undoes a multiplication by the scalar."""
    return bindings.crypto_core_ed25519_scalar_invert(of)


def product(a: bytes, b: bytes) -> bytes:
    """One scalar that does what both do."""
    return bindings.crypto_core_ed25519_scalar_mul(a, b)


def scalar_commitment(of: bytes, session: bytes) -> bytes:
    """32 bytes by which others recognise a scalar in this session, and learn nothing of it."""
    return hashlib.blake2b(
        bindings.crypto_scalarmult_ed25519_base_noclamp(of), digest_size=32, key=session, person=b"dvfl scalar"
    ).digest()
