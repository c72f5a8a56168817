"""Whether bytes are the file they should be."""

import gzip
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.data.sets.checksums import File, NotTheFile, checked

CONTENT = b"all that the file holds"
FILE = File("file", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


@given(st.binary(max_size=200).filter(lambda content: not content.startswith(b"\x1f\x8b")), st.booleans())
def test_the_right_bytes_are_taken_plain_or_compressed(content: bytes, sized: bool) -> None:
    file = File("file", hashlib.sha256(content).hexdigest(), len(content) if sized else None)
    assert checked(content, file) == checked(gzip.compress(content), file) == content


@given(st.integers(0, len(CONTENT) - 1), st.booleans())
def test_every_truncated_copy_is_refused(length: int, sized: bool) -> None:
    with pytest.raises(NotTheFile, match="bytes, expected 23: truncated" if sized else "has sha256"):
        checked(CONTENT[:length], FILE if sized else File("file", FILE.sha256))


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_every_changed_byte_is_refused(place: int, change: int) -> None:
    changed = bytearray(CONTENT)
    changed[place] ^= change
    with pytest.raises(NotTheFile, match=rf"has sha256 [0-9a-f]{{64}}, expected {FILE.sha256}"):
        checked(bytes(changed), FILE)


@given(st.integers(2, len(gzip.compress(CONTENT)) - 1))
def test_a_truncated_compressed_file_is_refused(length: int) -> None:
    with pytest.raises(NotTheFile):
        checked(gzip.compress(CONTENT)[:length], FILE)


def test_the_size_of_a_compressed_file_is_that_of_its_contents() -> None:
    with pytest.raises(NotTheFile, match="has 22 bytes uncompressed, expected 23"):
        checked(gzip.compress(CONTENT[1:]), FILE)
