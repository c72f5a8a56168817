"""The frame of a message, and the checks before anything in it is believed.

All numbers are little-endian: `DVFL`, the format's version (u8), the header's length (u32), the header, the arrays one
after the other, the CRC-32 of everything before it (u32). The header is a JSON object: `type`, the plain fields, and
`arrays` with name, type and shape of each. Spaces at its end bring the arrays to a multiple of four bytes.
"""

import json
import math
import struct
import zlib
from dataclasses import is_dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.protocol.messages import (
    TO,
    Ask,
    Chunk,
    Collect,
    Encodings,
    Fresh,
    GuestSeen,
    Hello,
    Here,
    Introduce,
    Introduced,
    Letter,
    Message,
    Predict,
    Predicted,
    Refused,
    Reply,
    Role,
    Status,
    Sweep,
    Tell,
    Welcome,
)
from dvfl.federation.protocol.wire_types import BadMessage, Schema, believed, check_name, schema

__all__ = [
    "MAX_HEADER",
    "MAX_MESSAGE",
    "TO",
    "UNREADABLE",
    "Ask",
    "BadMessage",
    "Chunk",
    "Collect",
    "Encodings",
    "Fresh",
    "GuestSeen",
    "Hello",
    "Here",
    "Introduce",
    "Introduced",
    "Letter",
    "Message",
    "Outline",
    "Predict",
    "Predicted",
    "Refused",
    "Reply",
    "Role",
    "Status",
    "Sweep",
    "Tell",
    "Welcome",
    "check_name",
    "decode",
    "encode",
    "json_object",
    "outline",
]

MAX_MESSAGE = 768 * 1024  # bytes
MAX_HEADER = 64 * 1024  # bytes; a Status may fill its message, because it speaks of every guest
UNREADABLE = "unreadable"  # the kind of bytes that no party takes for a message

_VERSION = 1
_FRONT = struct.Struct("<4sBI")
_CHECKSUM = struct.Struct("<I")
_KINDS: dict[str, type] = {kind.__name__.lower(): kind for kind in get_args(Message)}

One = TypeVar("One")
Other = TypeVar("Other")


def encode(message: Message) -> bytes:
    """The message as bytes; ValueError for one that `decode` would not believe."""
    kind: type = type(message)
    arrays = {name: np.ascontiguousarray(getattr(message, name)) for name in schema(kind).arrays}
    described = [[name, _name_of(array.dtype), list(array.shape)] for name, array in arrays.items()]
    header = {"type": kind.__name__.lower(), **_plain(message), "arrays": described}
    try:
        _read_header(header, (kind,))
        _check_values(kind, arrays)
    except BadMessage as error:
        raise ValueError(f"{kind.__name__} that no party would believe: {error}") from error
    text = _TEXT.encode(header).encode()
    text += b" " * (-(_FRONT.size + len(text)) % 4)
    parts: list[bytes | memoryview] = [_FRONT.pack(b"DVFL", _VERSION, len(text)), text]
    parts += [array.astype(array.dtype.newbyteorder("<"), copy=False).data for array in arrays.values()]
    size = sum(memoryview(part).nbytes for part in parts) + _CHECKSUM.size
    if size > MAX_MESSAGE or len(text) > _max_header(kind):
        raise ValueError(f"{kind.__name__} of {size} bytes, {len(text)} of them header; too long for the wire")
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([*parts, _CHECKSUM.pack(checksum)])


@overload
def decode(data: bytes, one: type[One], /) -> One: ...
@overload
def decode(data: bytes, one: type[One], other: type[Other], /) -> One | Other: ...
@overload
def decode(data: bytes, *expected: type) -> Message: ...
def decode(data: bytes, *expected: type) -> object:
    """The message in `data`, of one of the expected kinds (any without them); BadMessage for all other bytes.

    Arrays are read-only, and lie in `data` where it is aligned.
    """
    kinds = expected or tuple(_KINDS.values())
    text = _checked_header(data, max(map(_max_header, kinds)))
    try:
        header = json_object(str(text, "utf-8"))
    except UnicodeDecodeError as error:
        raise BadMessage("header is not UTF-8") from error
    kind, fields, shapes = _read_header(header, kinds)
    if len(text) > _max_header(kind):
        raise BadMessage("header is too long")
    start = _FRONT.size + len(text)
    arrays = _read_arrays(memoryview(data)[start : -_CHECKSUM.size], schema(kind), shapes)
    _check_values(kind, arrays)
    return kind(**fields, **arrays)


class Outline(NamedTuple):
    """What kind of message it is, and name, type and shape of every array in it; no values."""

    kind: str  # or UNREADABLE
    arrays: tuple[tuple[str, str, tuple[int, ...]], ...]


def outline(data: bytes) -> Outline:
    """The same of any bytes, by the header alone."""
    try:
        text = _checked_header(data, MAX_MESSAGE)
        kind, _, shapes = _read_header(json_object(str(text, "utf-8")), tuple(_KINDS.values()))
    except (BadMessage, UnicodeDecodeError):
        return Outline(UNREADABLE, ())
    rules = schema(kind).arrays.items()
    return Outline(
        kind.__name__, tuple((name, rule.dtype, tuple(one)) for (name, rule), one in zip(rules, shapes, strict=True))
    )


def json_object(text: str) -> dict[str, Any]:
    """A JSON object without what parsers disagree on: repeated keys, NaN and infinities; BadMessage for other text."""
    try:
        value = _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise BadMessage("not JSON") from error
    if type(value) is not dict:
        raise BadMessage("not a JSON object")
    return value


def _checked_header(data: bytes, longest: int) -> memoryview:
    """The header of a whole frame. Cheap checks come first, and no sender's text is parsed before its checksum."""
    if len(data) > MAX_MESSAGE:
        raise BadMessage("too long")
    if len(data) < _FRONT.size + _CHECKSUM.size:
        raise BadMessage("too short")
    magic, version, length = _FRONT.unpack_from(data)
    if magic != b"DVFL":
        raise BadMessage("not a message of dvfl")
    if version != _VERSION:
        raise BadMessage(f"not of version {_VERSION}")
    if length > longest:
        raise BadMessage("header is too long")
    if _FRONT.size + length + _CHECKSUM.size > len(data):
        raise BadMessage("too short for its header")
    whole = memoryview(data)
    if _CHECKSUM.pack(zlib.crc32(whole[: -_CHECKSUM.size])) != data[-_CHECKSUM.size :]:
        raise BadMessage("wrong checksum")
    return whole[_FRONT.size : _FRONT.size + length]


def _read_header(header: dict[str, Any], kinds: tuple[type, ...]) -> tuple[type, dict[str, Any], list[list[int]]]:
    """Kind, plain fields and shapes of arrays, all by the kind's schema."""
    plain = dict(header)
    name, described = plain.pop("type", None), plain.pop("arrays", None)
    kind = _KINDS.get(name) if type(name) is str else None
    if kind is None:
        raise BadMessage("unknown type")
    if kind not in kinds:
        raise BadMessage(f"unexpected type {kind.__name__}")
    fields = believed(kind, plain, "header")
    return kind, fields, _read_shapes(described, schema(kind))


def _read_shapes(described: Any, rules: Schema) -> list[list[int]]:
    if type(described) is not list or len(described) != len(rules.arrays):
        raise BadMessage("wrong number of arrays")
    shapes: list[list[int]] = []
    lengths: dict[str, int] = {}
    for one, (name, rule) in zip(described, rules.arrays.items(), strict=True):
        if type(one) is not list or len(one) != 3 or one[:2] != [name, rule.dtype]:
            raise BadMessage(f"{name} is not an array of {rule.dtype}")
        shape = one[2]
        if type(shape) is not list or len(shape) != len(rule.axes):
            raise BadMessage(f"{name} does not have the axes {', '.join(rule.axes)}")
        for axis, length in zip(rule.axes, shape, strict=True):
            if type(length) is not int or not rule.least <= length <= rule.longest:
                raise BadMessage(f"{name}: {axis} is not a length from {rule.least} to {rule.longest}")
            if lengths.setdefault(axis, length) != length:
                raise BadMessage(f"{name}: {axis} does not agree with the other arrays")
        shapes.append(shape)
    return shapes


def _read_arrays(body: memoryview, rules: Schema, shapes: list[list[int]]) -> dict[str, NDArray[Any]]:
    types = [_little(rule.dtype) for rule in rules.arrays.values()]
    counts = [math.prod(shape) for shape in shapes]
    if sum(count * dtype.itemsize for count, dtype in zip(counts, types, strict=True)) != len(body):
        raise BadMessage("the arrays do not fill the message")
    arrays, start = {}, 0
    for name, dtype, count, shape in zip(rules.arrays, types, counts, shapes, strict=True):
        array = np.frombuffer(body, dtype, count, start).reshape(shape)
        array = array if array.flags.aligned else array.copy()
        array.flags.writeable = False
        arrays[name] = array
        start += count * dtype.itemsize
    return arrays


@cache
def _little(name: str) -> np.dtype[Any]:
    return np.dtype(name).newbyteorder("<")


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    """Kept, as numpy takes longer for it than all else in a short message."""
    return dtype.name


def _check_values(kind: type, arrays: dict[str, NDArray[Any]]) -> None:
    for name, rule in schema(kind).arrays.items():
        if not rule.holds(arrays[name]):
            raise BadMessage(f"{name} are not all {rule.wanted}")


def _plain(value: Any) -> Any:
    """The plain fields of a message or of a value inside it, for JSON."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if not is_dataclass(value):
        return value
    kind: type = type(value)
    return {name: _plain(getattr(value, name)) for name in schema(kind).plain}


def _max_header(kind: type) -> int:
    return MAX_MESSAGE if kind is Status else MAX_HEADER


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BadMessage("a key twice")
    return members


def _no_constant(name: str) -> float:
    raise BadMessage("a number that JSON does not have")


_TEXT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_JSON = json.JSONDecoder(object_pairs_hook=_distinct_keys, parse_constant=_no_constant)
