"""Messages come back as they were sent, and go where they may."""

from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dvfl.errors import UserError
from dvfl.federation.protocol.wire import (
    TO,
    Chunk,
    Encodings,
    GuestSeen,
    Message,
    Refused,
    Status,
    Sweep,
    Welcome,
    check_name,
    decode,
    encode,
)
from dvfl.federation.protocol.wire_types import (
    Age,
    Ages,
    Count,
    Document,
    Flag,
    Floats,
    Loss,
    Marks,
    Name,
    Octets,
    Seconds,
    Slots,
    SomeFloats,
    SomeSlots,
    States,
    Text,
    schema,
)

KINDS: tuple[type, ...] = get_args(Message)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if is_dataclass(one):
        names = type(one).__dataclass_fields__
        return type(one) is type(other) and all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


# Values for every field, by its annotation.

texts = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=256)
counts = st.integers(0, 2**63 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
HASHES = st.text("0123456789abcdef", max_size=64)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    Count: counts,
    Text: texts,
    Document: st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=1000),
    Name: st.from_regex(r"[a-z][a-z0-9-]{0,62}", fullmatch=True),
    Flag: st.booleans(),
    Seconds: st.floats(0, allow_infinity=False),
    Age: st.just(-1.0) | st.floats(0, allow_infinity=False),
    Loss: st.none() | finite,
}


@st.composite
def messages(draw: st.DrawFn, kind: type) -> Any:
    rows, width, guests = (draw(st.integers(1, 5)) for _ in range(3))
    some = draw(st.integers(0, 3))
    values = {
        **VALUES,
        Slots: arrays.arrays(np.int32, rows, elements=st.integers(0, 2**31 - 1), unique=True),
        Floats: arrays.arrays(
            np.float32, (rows, width), elements=st.floats(allow_nan=False, allow_infinity=False, width=32)
        ),
        Marks: arrays.arrays(np.uint8, (rows, guests), elements=st.integers(0, 1)),
        SomeSlots: arrays.arrays(np.int32, some, elements=st.integers(0, 2**31 - 1), unique=True),
        SomeFloats: arrays.arrays(np.float32, (some, width), elements=st.floats(-1, 1, width=32)),
        States: arrays.arrays(np.uint8, (rows, guests), elements=st.integers(0, 3)),
        Ages: arrays.arrays(np.float32, (rows, guests), elements=st.just(-1.0) | st.floats(0, 2**100, width=32)),
        Octets: arrays.arrays(np.uint8, st.integers(1, 100)),
    }
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: draw(values[hint]) for name, hint in hints.items() if hint in values}
    if kind is Encodings:
        parts = draw(st.integers(1, 2**63 - 1))
        fields["sweep"] = draw(st.none() | st.builds(Sweep, st.integers(0, parts - 1), st.just(parts), HASHES, HASHES))
    if kind is Status:
        fields["guests"] = draw(st.dictionaries(VALUES[Name], messages(GuestSeen), max_size=3))
    return kind(**fields)


# There and back.


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=30)
def test_a_message_comes_back_as_it_was_sent(kind: type, data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    assert same(decode(encode(message)), message)
    assert same(decode(encode(message), Refused, kind), message)


def test_a_status_has_room_for_all_guests_a_host_may_have() -> None:
    most = 2**63 - 1
    seen = GuestSeen(
        "training", most, most, most, 0.1, "ab" * 32, -1.2345678901234567e-100, 0, 0, most, most, most, 0.1
    )
    guests = {f"guest-{number}-{'x' * 40}": seen for number in range(1024)}
    status = Status("host-1", "ab", 1, "training", 1, 2, 3, 0.25, "", 4, 0, 0, 5, 6, 7, 8, 2.5, guests)
    assert decode(encode(status), Status) == status


def test_a_chunk_has_room_for_512_kilobytes_of_values() -> None:
    values, present = np.ones((1024, 128), np.float32), np.ones((1024, 64), np.uint8)
    chunk = Chunk("host-1", "ab", "cd", 0, 12, values, present)
    assert decode(encode(chunk), Chunk).values.nbytes == 512 * 1024


# To whom.


def test_no_message_that_may_go_to_a_guest_has_a_floating_point_array() -> None:
    to_guests = [kind for kind in KINDS if TO.get(kind, "guest") == "guest"]  # one without an entry may go to anyone
    assert Welcome in to_guests
    assert Encodings not in to_guests
    for kind in to_guests:
        assert not [rule for rule in schema(kind).arrays.values() if np.issubdtype(np.dtype(rule.dtype), np.floating)]


def test_every_message_but_a_refusal_says_to_whom_it_goes() -> None:
    assert {*TO, Refused} == set(KINDS)
    assert not schema(Refused).arrays


# Names.


@pytest.mark.parametrize("name", ["g", "guest-1", "a" * 63, "a--"])
def test_names_of_parties(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "1a", "-a", "Guest", "a_b", "a.b", "a b", "a\n", "é", "a" * 64, "a>b", "a*"])
def test_what_cannot_name_a_party(name: str) -> None:
    with pytest.raises(UserError, match="cannot name a party"):
        check_name(name)
