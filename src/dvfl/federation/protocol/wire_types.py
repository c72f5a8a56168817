"""The rules that the fields of messages keep; a dataclass names one for each of its fields in the annotation."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dvfl.errors import UserError

MAX_GUESTS = 1024
MAX_LENGTH = 65_536  # of an axis, where nothing else is said
MAX_OCTETS = 720 * 1024  # of a sealed message's content
MAX_TEXT = 256  # characters
MAX_PLAN = 49_152  # characters

ABSENT, CACHED, FRESH, SUSPECTED = range(4)  # what a host had of a guest for a row

Check = Callable[[Any, str], Any]  # takes a plain value and its field's name; gives the value to believe, or raises

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class BadMessage(Exception):
    """What came is not a message; a few words say why, none of them the sender's."""


def check_name(name: str) -> None:
    """Raises for what cannot name a party."""
    if not _NAME.fullmatch(name):
        right = "1 to 63 lower-case letters, digits and '-', the first a letter,"
        raise UserError(f"{name!r} cannot name a party; {right} are right")


@dataclass(frozen=True)
class Array:
    """The rule of an array: its type, its axes, and what its values must be. Axes of one name have one length."""

    dtype: str
    axes: tuple[str, ...]
    holds: Callable[[NDArray[Any]], bool]
    wanted: str
    longest: int = MAX_LENGTH  # of an axis
    least: int = 1


@dataclass(frozen=True)
class Schema:
    """The rules of a dataclass's fields, in their order."""

    plain: dict[str, Check]
    arrays: dict[str, Array]


@cache
def schema(kind: type) -> Schema:
    """Read off the annotations."""
    rules = {name: hint.__metadata__[0] for name, hint in get_type_hints(kind, include_extras=True).items()}
    arrays = {name: rule for name, rule in rules.items() if isinstance(rule, Array)}
    return Schema({name: rule for name, rule in rules.items() if name not in arrays}, arrays)


def believed(kind: type, plain: Any, where: str) -> dict[str, Any]:
    """The checked values of exactly the plain fields of `kind`."""
    rules = schema(kind).plain
    if type(plain) is not dict or plain.keys() != rules.keys():
        raise BadMessage(f"{where} does not have exactly the fields of {kind.__name__}")
    return {name: check(plain[name], name) for name, check in rules.items()}


def optional(check: Check) -> Check:
    """The same, or nothing."""
    return lambda value, where: None if value is None else check(value, where)


def record(kind: type) -> Check:
    """A dataclass inside a message."""
    return lambda value, where: kind(**believed(kind, value, where))


def by_name(check: Check) -> Check:
    """One value for each of some guests."""

    def checked(value: Any, where: str) -> dict[str, Any]:
        if type(value) is not dict or len(value) > MAX_GUESTS:
            raise BadMessage(f"{where} is not a table of at most {MAX_GUESTS} guests")
        return {_name(name, where): check(one, where) for name, one in value.items()}

    return checked


def _whole(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:  # `type`, because a bool is an int to isinstance
        raise BadMessage(f"{where} is not a whole number from 0 to 2**63 - 1")
    return value


def _number(low: float) -> Check:
    def check(value: Any, where: str) -> float:
        if type(value) not in (int, float) or not low <= value <= sys.float_info.max:  # NaN fails every comparison
            raise BadMessage(f"{where} is not a finite number from {low}")
        return float(value)

    return check


def _text(longest: int) -> Check:
    def check(value: Any, where: str) -> str:
        # Texts end up in logs and on terminals: no control characters. Half a surrogate pair is not printable either.
        if type(value) is not str or len(value) > longest or not value.isprintable():
            raise BadMessage(f"{where} is not one line of at most {longest} printable characters")
        return value

    return check


def _name(value: Any, where: str) -> str:
    if type(value) is not str or not _NAME.fullmatch(value):
        raise BadMessage(f"{where} does not name a party")
    return value


def _flag(value: Any, where: str) -> bool:
    if type(value) is not bool:
        raise BadMessage(f"{where} is not true or false")
    return value


def _distinct(slots: NDArray[Any]) -> bool:
    ordered = np.sort(slots) if len(slots) > 1 else slots
    return bool((ordered[:1] >= 0).all() and (ordered[1:] > ordered[:-1]).all())


def _finite(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all())


def _any(values: NDArray[Any]) -> bool:
    return True


def _binary(values: NDArray[Any]) -> bool:
    return bool(values.max() <= 1)


def _state(values: NDArray[Any]) -> bool:
    return bool(values.max() <= SUSPECTED)


def _age(values: NDArray[Any]) -> bool:
    return _finite(values) and bool(values.min() >= -1)


Count = Annotated[int, _whole]
Text = Annotated[str, _text(MAX_TEXT)]
Document = Annotated[str, _text(MAX_PLAN)]
Name = Annotated[str, _name]
Flag = Annotated[bool, _flag]
Seconds = Annotated[float, _number(0.0)]
Age = Annotated[float, _number(-1.0)]  # seconds; -1 before there is anything to have an age
Loss = Annotated[float | None, optional(_number(-sys.float_info.max))]
Slots = Annotated[NDArray[np.int32], Array("int32", ("rows",), _distinct, "distinct and not negative")]
Floats = Annotated[NDArray[np.float32], Array("float32", ("rows", "width"), _finite, "finite")]
Marks = Annotated[NDArray[np.uint8], Array("uint8", ("rows", "guests"), _binary, "0 or 1")]
SomeSlots = Annotated[NDArray[np.int32], Array("int32", ("rows",), _distinct, "distinct and not negative", least=0)]
SomeFloats = Annotated[NDArray[np.float32], Array("float32", ("rows", "width"), _finite, "finite", least=0)]
States = Annotated[NDArray[np.uint8], Array("uint8", ("rows", "guests"), _state, "states")]
Ages = Annotated[NDArray[np.float32], Array("float32", ("rows", "guests"), _age, "seconds, or -1")]
Octets = Annotated[NDArray[np.uint8], Array("uint8", ("octets",), _any, "octets", MAX_OCTETS)]
