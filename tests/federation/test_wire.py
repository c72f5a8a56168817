"""Nothing but a whole, right message is believed."""

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.federation.protocol.wire import (
    MAX_HEADER,
    MAX_MESSAGE,
    Ask,
    BadMessage,
    Chunk,
    Collect,
    Encodings,
    Fresh,
    GuestSeen,
    Hello,
    Here,
    Message,
    Predict,
    Predicted,
    Refused,
    Status,
    Sweep,
    Tell,
    Welcome,
    decode,
    encode,
    outline,
)

KINDS: tuple[type, ...] = get_args(Message)
FRONT = 9  # bytes before the header

ENCODINGS = Encodings(
    run="ab" * 16,
    guest="guest-1",
    lineage=7,
    incarnation=8,
    epoch=2,
    iteration=3,
    sweep=Sweep(1, 4, "cd" * 32, "ce" * 32),
    slots=np.array([5, 0, 9], np.int32),
    values=np.arange(6, dtype=np.float32).reshape(3, 2),
)
HELLO = Hello("", "guest-1", 7, 8, 2, 3, "training", 1, 0, 0, 10, 9, 1, 0.5, 1.5)
WELCOME = Welcome("host-1", 7, 8, 2, 3, True, False, False, False, '{"plan":1}')
SEEN = GuestSeen("training", 2, 3, 500, -1.0, "", None, 0, 0, 10, 9, 1, 1.5)
STATUS = Status("host-1", "ab", 1, "training", 1, 2, 3, 0.25, "", 4, 0, 0, 5, 6, 7, 8, 2.5, {"guest-1": SEEN})
CHUNK = Chunk("host-1", "ab", "cd", 0, 12, np.ones((2, 3), np.float32), np.array([[0, 1], [1, 1]], np.uint8))
SLOTS, VALUES = np.array([5, 0, 9], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2)
AGES = np.array([[-1, 2.5], [0, -1], [0, 0]], np.float32)
EXAMPLES: list[Message] = [
    ENCODINGS,
    HELLO,
    WELCOME,
    Tell("{}"),
    STATUS,
    Collect("ab", "cd", 3),
    CHUNK,
    Predict("ab", "cd", 1500, SLOTS),
    Predicted("host-1", "ab", "cd", SLOTS, VALUES, np.array([[0, 1], [2, 3], [2, 2]], np.uint8), AGES),
    Ask("ab", 900, SLOTS),
    Fresh("guest-1", "ab", "ef", "0f", SLOTS, VALUES),
    Here("guest-1", "ab", "0f", "training", 0.25, 10, 20),
    Refused("no such run"),
]
each_message = pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)


def framed(header: bytes, body: bytes = b"", magic: bytes = b"DVFL", version: int = 1) -> bytes:
    """A frame with the right length and checksum around anything."""
    front = struct.pack("<4sBI", magic, version, len(header)) + header + body
    return front + struct.pack("<I", zlib.crc32(front))


def parted(data: bytes) -> tuple[dict[str, Any], bytes]:
    end = FRONT + struct.unpack_from("<I", data, 5)[0]
    return json.loads(data[FRONT:end]), data[end:-4]


def changed(message: Message, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The message's frame with a changed header and a checksum that fits it."""
    header, body = parted(encode(message))
    change(header)
    return framed(json.dumps(header).encode(), body)


# Arrays.


def test_arrays_come_back_read_only_and_without_a_copy() -> None:
    data = encode(ENCODINGS)
    message = decode(data, Encodings)
    for array in (message.slots, message.values):
        assert array.flags.aligned
        assert not array.flags.writeable
        assert np.shares_memory(array, np.frombuffer(data, np.uint8))


def test_arrays_that_do_not_lie_on_their_alignment_are_copied() -> None:
    header, body = parted(encode(ENCODINGS))
    for spaces in range(4):
        message = decode(framed(json.dumps(header).encode() + b" " * spaces, body), Encodings)
        assert message.values.flags.aligned
        assert not message.values.flags.writeable
        assert encode(message) == encode(ENCODINGS)


def test_arrays_need_not_be_contiguous_to_be_sent() -> None:
    strided = replace(ENCODINGS, values=np.asfortranarray(ENCODINGS.values), slots=np.arange(6, dtype=np.int32)[::2])
    assert decode(encode(strided), Encodings).values.tolist() == strided.values.tolist()
    assert decode(encode(strided), Encodings).slots.tolist() == [0, 2, 4]


def test_a_whole_number_will_do_for_seconds() -> None:
    assert decode(encode(replace(HELLO, longest_wait_s=2)), Hello).longest_wait_s == 2.0


@each_message
def test_an_outline_says_of_a_message_what_is_in_it_and_no_more(message: Message) -> None:
    made = outline(encode(message))
    arrays = {name: getattr(message, name) for name in message.__dataclass_fields__}
    there = [(name, one.dtype.name, one.shape) for name, one in arrays.items() if isinstance(one, np.ndarray)]
    assert made == (type(message).__name__, tuple(there))


# Frames.


@each_message
def test_every_single_flipped_bit_is_noticed(message: Message) -> None:
    data = encode(message)
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            with pytest.raises(BadMessage):
                decode(bytes(flipped))


@each_message
def test_a_cut_or_lengthened_message_is_noticed(message: Message) -> None:
    data = encode(message)
    for wrong in (*(data[:length] for length in range(len(data))), data + b"\0", data + data):
        with pytest.raises(BadMessage):
            decode(wrong)


@given(st.binary(max_size=300))
def test_random_bytes_are_no_message(data: bytes) -> None:
    for wrong in (data, b"DVFL\x01" + data, framed(data), framed(b"{}", data)):
        with pytest.raises(BadMessage):
            decode(wrong)


def test_another_magic_or_version_is_refused() -> None:
    header, body = parted(encode(HELLO))
    text = json.dumps(header).encode()
    assert decode(framed(text, body)) == HELLO
    with pytest.raises(BadMessage, match="not a message of dvfl"):
        decode(framed(text, body, magic=b"DVFM"))
    with pytest.raises(BadMessage, match="not of version 1"):
        decode(framed(text, body, version=2))


def test_too_long_a_message_is_refused_before_anything_else() -> None:
    with pytest.raises(BadMessage, match=r"^too long$"):
        decode(b"x" * (MAX_MESSAGE + 1))


def test_too_long_a_header_is_refused_unless_it_is_that_of_a_status() -> None:
    for message in (HELLO, STATUS):
        header, _ = parted(encode(message))
        long = framed(json.dumps(header).encode() + b" " * MAX_HEADER)
        if message is STATUS:
            assert decode(long) == STATUS
            continue
        for expected in ((Hello,), (Hello, Status), ()):
            with pytest.raises(BadMessage, match="header is too long"):
                decode(long, *expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "null",
        "{",
        '{"type":"tell","arrays":[],"plan":"a","plan":"a"}',
        '{"type":"tell","arrays":[],"plan":"a"}{}',
        '{"type":"collect","arrays":[],"run":"","frozen":"","pass_number":0,"chunk":NaN}',
        '{"type":"collect","arrays":[],"run":"","frozen":"","pass_number":0,"chunk":-Infinity}',
        '{"type":"collect","arrays":[],"run":"","frozen":"","pass_number":0,"chunk":1e999}',
        '{"type":"collect","arrays":[],"run":"","frozen":"","pass_number":0,"chunk":' + "9" * 5000 + "}",
        '{"type":"collect","arrays":[],"run":"","frozen":"","pass_number":0,"chunk":9223372036854775808}',
        '{"type":"refused","arrays":[],"reason":"\\ud800"}',
        '{"type":"refused","arrays":[],"reason":"\\u001b[31m"}',
        '{"type":["refused"],"arrays":[],"reason":""}',
        '{"type":"refused","arrays":' + "[" * 60_000 + "}",
        '{"a":' * 10_000,
        "\ufeff{}",
    ],
    ids=lambda text: text[:60],
)
def test_json_that_is_no_header_is_refused(text: str) -> None:
    with pytest.raises(BadMessage):
        decode(framed(text.encode()))


def test_a_header_that_is_not_utf_8_is_refused() -> None:
    for text in (b'{"type":"refused","arrays":[],"reason":"\xff"}', '{"type":"refused"}'.encode("utf-16")):
        with pytest.raises(BadMessage):
            decode(framed(text))


def test_a_message_of_an_unexpected_or_unknown_kind_is_refused() -> None:
    with pytest.raises(BadMessage, match="unexpected type Hello"):
        decode(encode(HELLO), Encodings, Refused)
    with pytest.raises(BadMessage, match="unknown type"):
        decode(changed(HELLO, lambda header: header.update(type="sweep")))


# Headers whose checksum is right.


@each_message
def test_every_field_is_needed_under_its_own_name_and_no_other(message: Message) -> None:
    def rename(header: dict[str, Any], name: str) -> None:
        header[name + "_"] = header.pop(name)

    for name in parted(encode(message))[0]:
        for change in (lambda header, name=name: header.pop(name), lambda header, name=name: rename(header, name)):
            with pytest.raises(BadMessage):
                decode(changed(message, change))
    with pytest.raises(BadMessage):
        decode(changed(message, lambda header: header.update(extra=1)))


@each_message
def test_a_value_of_another_type_is_refused_in_every_field(message: Message) -> None:
    strange: list[Any] = [None, True, 1, 1.5, -1, -2.0, 2**63, "x", "X!", "", "x" * 50_000, [], [1], {}, {"a": 1}]
    header, _ = parted(encode(message))
    for name, before in header.items():
        for value in strange:
            allowed = type(value) is type(before) or name in ("loss", "sweep", "longest_wait_s", "vouched_s")
            if not allowed or value == "x" * 50_000:
                with pytest.raises(BadMessage):
                    decode(changed(message, lambda header, name=name, value=value: header.update({name: value})))


@pytest.mark.parametrize(
    ("message", "change"),
    [
        (HELLO, {"loss": "0.5"}),
        (HELLO, {"loss": True}),
        (HELLO, {"longest_wait_s": -0.5}),
        (HELLO, {"longest_wait_s": None}),
        (HELLO, {"longest_wait_s": 10**400}),
        (HELLO, {"epoch": -1}),
        (HELLO, {"epoch": 2.0}),
        (HELLO, {"state": "x" * 257}),
        (HELLO, {"state": "two\nlines"}),
        (HELLO, {"guest": "Guest-1"}),
        (HELLO, {"guest": "guest-1\n"}),
        (HELLO, {"guest": "g" * 64}),
        (WELCOME, {"refill": 1}),
        (WELCOME, {"plan": "x" * 49_153}),
        (WELCOME, {"host": ""}),
        (ENCODINGS, {"sweep": {"part": 4, "parts": 4, "encoder": ""}}),
        (ENCODINGS, {"sweep": {"part": 0, "parts": 4}}),
        (ENCODINGS, {"sweep": {"part": 0, "parts": 4, "encoder": "", "more": 1}}),
        (ENCODINGS, {"sweep": [0, 4, ""]}),
        (STATUS, {"guests": {"guest-1": {}}}),
        (STATUS, {"guests": {"guest-1": None}}),
        (STATUS, {"guests": {f"guest-{number}": None for number in range(1025)}}),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_value_out_of_range_is_refused(message: Message, change: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match=f"^({next(iter(change))}|part|encoder|guests|sweep) "):
        decode(changed(message, lambda header: header.update(change)))


def test_too_many_guests_or_one_that_is_not_named_so_are_refused() -> None:
    seen = parted(encode(STATUS))[0]["guests"]["guest-1"]
    many = {f"g{number}": seen for number in range(1025)}
    for guests in (many, {"Guest": seen}, {"guest-1": {**seen, "age_s": -2}}, {"guest-1": {**seen, "held": True}}):
        with pytest.raises(BadMessage):
            decode(changed(STATUS, lambda header, guests=guests: header.update(guests=guests)))


@pytest.mark.parametrize(
    "described",
    [
        None,
        {},
        [],
        [["slots", "int32", [3]]],
        [["values", "float32", [3, 2]], ["slots", "int32", [3]]],
        [["slots", "int32", [3]], ["values", "float32", [3, 2]], ["more", "uint8", [1]]],
        [["slots", "int32", [3]], ["slots", "int32", [3]]],
        [["slots", "int32", [3]], ["values", "float16", [3, 4]]],
        [["slots", "int32", [3]], ["values", "int32", [3, 2]]],
        [["slots", "uint32", [3]], ["values", "float32", [3, 2]]],
        [["slots", "int32", [3]], ["values", "float32", [6]]],
        [["slots", "int32", [3]], ["values", "float32", [3, 2, 1]]],
        [["slots", "int32", [3]], ["values", "float32", [2, 3]]],
        [["slots", "int32", [5]], ["values", "float32", [2, 2]]],
        [["slots", "int32", [3]], ["values", "float32", [3, 3]]],
        [["slots", "int32", [3]], ["values", "float32", [3, 1]]],
        [["slots", "int32", [0]], ["values", "float32", [0, 9]]],
        [["slots", "int32", [-3]], ["values", "float32", [-3, -2]]],
        [["slots", "int32", [True]], ["values", "float32", [True, 8]]],
        [["slots", "int32", [3.0]], ["values", "float32", [3.0, 2]]],
        [["slots", "int32", [3]], ["values", "float32", [3, 2**70]]],
        [["slots", "int32", [65_537]], ["values", "float32", [65_537, 1]]],
        [["slots", "int32", "3"], ["values", "float32", [3, 2]]],
        [["slots", "int32"], ["values", "float32", [3, 2]]],
        ["slots", "values"],
    ],
    ids=repr,
)
def test_arrays_must_be_described_exactly_as_they_are(described: Any) -> None:
    with pytest.raises(BadMessage):
        decode(changed(ENCODINGS, lambda header: header.update(arrays=described)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(EXAMPLES), st.data())
@settings(max_examples=300)
def test_any_value_anywhere_gives_a_message_or_a_bad_message(message: Message, data: st.DataObject) -> None:
    header, body = parted(encode(message))
    place: Any = header
    while True:
        keys = range(len(place)) if isinstance(place, list) else sorted(place)
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    try:
        believed = decode(framed(json.dumps(header).encode(), body))
    except BadMessage as error:
        assert len(str(error)) < 100  # short, whatever was sent
    else:
        assert encode(decode(encode(believed))) == encode(believed)


# Values in arrays.


def test_slots_that_are_negative_or_repeated_are_refused() -> None:
    header, body = parted(encode(ENCODINGS))
    for slots in ([5, 0, -1], [5, 9, 5]):
        wrong = np.array(slots, "<i4").tobytes() + body[12:]
        with pytest.raises(BadMessage, match="slots are not all distinct and not negative"):
            decode(framed(json.dumps(header).encode(), wrong))


@given(st.integers(0, 5), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_a_number_that_is_not_finite_is_refused(place: int, number: float) -> None:
    header, body = parted(encode(ENCODINGS))
    values = np.frombuffer(body[12:], "<f4").copy()
    values[place] = number
    with pytest.raises(BadMessage, match="values are not all finite"):
        decode(framed(json.dumps(header).encode(), body[:12] + values.tobytes()))


def test_presence_is_zero_or_one() -> None:
    header, body = parted(encode(CHUNK))
    with pytest.raises(BadMessage, match="present are not all 0 or 1"):
        decode(framed(json.dumps(header).encode(), body[:-1] + b"\x02"))


# What the program itself must not send.


@pytest.mark.parametrize(
    "wrong",
    [
        replace(HELLO, guest="Guest"),
        replace(HELLO, epoch=-1),
        replace(HELLO, loss=float("nan")),
        replace(ENCODINGS, values=np.full((3, 2), np.nan, np.float32)),
        replace(ENCODINGS, values=np.ones((3, 2))),
        replace(ENCODINGS, values=np.ones((2, 2), np.float32)),
        replace(ENCODINGS, slots=np.array([1, 1, 2], np.int32)),
        replace(ENCODINGS, slots=np.empty(0, np.int32), values=np.empty((0, 2), np.float32)),
        replace(ENCODINGS, sweep=Sweep(2, 2, "", "")),
        replace(ENCODINGS, slots=np.arange(400, dtype=np.int32), values=np.ones((400, 500), np.float32)),
        replace(WELCOME, plan='"' * 49_152),
        Refused("two\nlines"),
    ],
    ids=lambda message: repr(message)[:60],
)
def test_a_message_that_nobody_would_believe_is_not_encoded(wrong: Message) -> None:
    with pytest.raises(ValueError, match=type(wrong).__name__):
        encode(wrong)
