"""Two-party private set intersection by openmined-psi, a part at a time, on packed elements of 33 bytes.

The library's objects must not be used by two threads at once (it ends the process), so each call makes its own.
"""

from collections.abc import Sequence
from typing import Any

from dvfl.align.union.spreading import spread
from dvfl.errors import UserError

ELEMENT = 33  # bytes: a compressed point of P-256
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
_NO_MEANING = 1e-9  # a rate of false positives: there are none among raw elements, and one must be given


class BadElement(Exception):
    """Bytes that are no elements."""


def psi_key(random64: bytes) -> bytes:
    """A key from 64 random bytes."""
    return (int.from_bytes(random64, "big") % (_ORDER - 1) + 1).to_bytes(32, "big")


def offered(key: bytes, ids: Sequence[bytes], threads: int = 1) -> bytes:
    """The server's elements under its key; those that one thread made are sorted."""
    psi = library()

    def part(start: int, stop: int) -> bytes:
        server = psi.server.CreateFromKey(key, True)
        setup = server.CreateSetupMessage(_NO_MEANING, stop - start, ids[start:stop], psi.DataStructure.RAW)
        return b"".join(setup.raw.encrypted_elements)

    return b"".join(spread(part, len(ids), threads))


def requested(key: bytes, ids: Sequence[bytes], threads: int = 1) -> bytes:
    """The client's elements under its key."""
    psi = library()

    def part(start: int, stop: int) -> bytes:
        return b"".join(psi.client.CreateFromKey(key, True).CreateRequest(ids[start:stop]).encrypted_elements)

    return b"".join(spread(part, len(ids), threads))


def responded(key: bytes, request: bytes, threads: int = 1) -> bytes:
    """The client's elements under both keys."""
    psi, elements = library(), _elements(request)

    def part(start: int, stop: int) -> bytes:
        message = psi.Request(reveal_intersection=True, encrypted_elements=elements[start:stop])
        return b"".join(psi.server.CreateFromKey(key, True).ProcessRequest(message).encrypted_elements)

    try:
        return b"".join(spread(part, len(elements), threads))
    except RuntimeError as error:  # what the library raises for points that are not on the curve
        raise BadElement("bytes that are no points of the curve") from error


def intersection(key: bytes, offers: Sequence[bytes], responses: Sequence[bytes], threads: int = 1) -> list[int]:
    """The places of the client's elements, counted through all responses, that the server has too; rising."""
    psi = library()
    setup = psi.ServerSetup()
    setup.raw.SetInParent()  # also where there is nothing in it
    setup.raw.encrypted_elements.extend(sorted(one for offer in offers for one in _elements(offer)))
    elements = [one for response in responses for one in _elements(response)]

    def part(start: int, stop: int) -> list[int]:
        response = psi.Response(encrypted_elements=elements[start:stop])
        found = psi.client.CreateFromKey(key, True).GetIntersection(setup, response)
        return [start + place for place in sorted(found)]

    try:
        return [place for places in spread(part, len(elements), threads) for place in places]
    except RuntimeError as error:
        raise BadElement("bytes that are no points of the curve") from error


def library() -> Any:
    """openmined-psi, which is an extra."""
    try:
        from private_set_intersection import python
    except ImportError as error:
        raise UserError("openmined-psi is not installed; pip install 'dvfl[psi]' is right") from error
    return python


def _elements(packed: bytes) -> list[bytes]:
    if len(packed) % ELEMENT:
        raise BadElement(f"{len(packed)} bytes are no whole number of elements")
    return [packed[place : place + ELEMENT] for place in range(0, len(packed), ELEMENT)]
