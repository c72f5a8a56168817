"""Ids as bytes that are the same at every party; what is wrong with them is said without showing any."""

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from dvfl.errors import UserError

Case = Literal["keep", "fold"]

VERSION = 1  # of the normalisation: parties with different ones would not meet
_AT_ONCE = 1 << 20  # rows that are normalised at once
_EXACT = 2**53  # whole numbers up to it are exact in float64
_SPACE = "".join(chr(code) for code in range(128) if chr(code).isspace())


@dataclass(frozen=True)
class IdRules:
    """What ids are evened out by, besides trimming and Unicode's form NFKC."""

    case: Case = "keep"

    def __post_init__(self) -> None:
        if self.case not in get_args(Case):
            raise UserError(f"case = {self.case!r}: 'keep' or 'fold' is right")


def normalised(column: pa.ChunkedArray, rules: IdRules, where: str, id_column: str) -> list[bytes]:
    """The ids in UTF-8, in their order; raises, naming the file and the column, where they cannot be ids.

    Whole numbers and their text are the same id, 7 and "7"; "007" is another.
    """
    missing = column.null_count
    if types.is_floating(column.type):
        missing += pc.sum(pc.is_nan(column)).as_py() or 0  # that is how pandas keeps whole numbers with gaps
    if missing:
        raise UserError(f"{where}: {missing} of {len(column)} rows have no '{id_column}'; every row needs one")
    text = _text(column, where, id_column)
    even = pa.chunked_array([_even(part, rules) for part in _parts(text)], pa.large_string())
    empty = pc.sum(pc.equal(pc.binary_length(even), 0)).as_py() or 0
    if empty:
        raise UserError(f"{where}: {empty} of {len(even)} rows have an empty '{id_column}'; every row needs one")
    doubled = len(even) - pc.count_distinct(even).as_py()
    if doubled:
        plain = len(text) - pc.count_distinct(text).as_py()
        how = f", {doubled - plain} of them only once {_evened(rules)}" if doubled > plain else ""
        raise UserError(
            f"{where}: {doubled} of {len(even)} rows repeat an earlier '{id_column}'{how}; each may occur once"
        )
    return [one for part in even.chunks for one in part.cast(pa.large_binary()).to_pylist()]


def from_objects(values: Sequence[object], where: str, id_column: str) -> pa.ChunkedArray:
    """A column of Python's objects, as data frames may hold them; raises where they are of several types."""
    kinds = sorted({_kind(value) for value in values if not _is_missing(value)})
    if len(kinds) > 1:
        raise UserError(f"{where}: the ids in '{id_column}' are of mixed types ({', '.join(kinds)}); write them alike")
    try:
        return pa.chunked_array([pa.array(values, from_pandas=True)])
    except (pa.ArrowException, OverflowError) as error:
        raise UserError(f"{where}: the ids in '{id_column}' are {kinds[0]}; use whole numbers or text") from error


def evened(text: str, rules: IdRules) -> str:
    """One id, by the definition: NFKC, folded where the rules say so, and trimmed."""
    text = unicodedata.normalize("NFKC", text)
    if rules.case == "fold":
        text = unicodedata.normalize("NFKC", text.casefold())
    return text.strip()


def commitment(rules: IdRules, salt: bytes) -> bytes:
    """32 bytes that are the same at parties that normalise alike."""
    said = repr((VERSION, rules.case)).encode()
    return hashlib.blake2b(said, digest_size=32, key=salt, person=b"dvfl id rules").digest()


def check_commitment(theirs: bytes, own: IdRules, salt: bytes, party: str) -> None:
    """Raises, naming the party and what it does, where it normalises ids in another way."""
    if theirs == commitment(own, salt):
        return
    case = next((case for case in get_args(Case) if theirs == commitment(IdRules(case), salt)), None)
    what = f"case = '{case}', and here it is '{own.case}'" if case else "by the rules of another version of dvfl"
    raise UserError(f"{party} normalises ids differently: {what}; all parties must agree")


def _text(column: pa.ChunkedArray, where: str, id_column: str) -> pa.ChunkedArray:
    """The ids as they would be written."""
    if types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    kind, ids = column.type, f"{where}: the ids in '{id_column}'"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pc.cast(column, pa.large_string())
    if types.is_integer(kind):
        return pc.cast(column, pa.large_string())
    if types.is_floating(kind) or types.is_decimal(kind):
        whole = _whole(column)
        if whole is None:
            raise UserError(
                f"{ids} have fractions, so that the column looks like a feature; name the column of the ids"
            )
        if types.is_floating(kind) and (pc.max(pc.abs(whole)).as_py() or 0) > _EXACT:
            raise UserError(f"{ids} are floating-point numbers too large to be exact; write them as whole numbers")
        return pc.cast(whole, pa.large_string())
    if types.is_union(kind):
        raise UserError(f"{ids} are of mixed types; write them alike, as whole numbers or text")
    if types.is_boolean(kind) or types.is_temporal(kind):
        raise UserError(f"{ids} are of the type {kind}, so that the column looks like a feature; name that of the ids")
    raise UserError(f"{ids} are of the type {kind}; use whole numbers or text")


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The numbers as integers, None where one is not."""
    try:
        if types.is_floating(column.type):
            return pc.cast(pc.cast(column, pa.float64()), pa.int64())
        return pc.cast(column, pa.decimal256(76, 0) if types.is_decimal256(column.type) else pa.decimal128(38, 0))
    except pa.ArrowInvalid:
        return None


def _parts(text: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in text.chunks:
        for start in range(0, len(chunk), _AT_ONCE):
            yield chunk.slice(start, _AT_ONCE)


def _even(text: pa.Array, rules: IdRules) -> pa.Array:
    """ASCII goes through Arrow; what has other characters is evened out one by one."""
    plain = pc.string_is_ascii(text)
    even = pc.utf8_trim(text, _SPACE)
    if rules.case == "fold":
        even = pc.ascii_lower(even)
    if pc.all(plain).as_py() is False:
        others = [evened(one, rules) for one in text.filter(pc.invert(plain)).to_pylist()]
        even = pc.replace_with_mask(even, pc.invert(plain), pa.array(others, pa.large_string()))
    return even


def _evened(rules: IdRules) -> str:
    return "spaces and Unicode forms are evened out" if rules.case == "keep" else "spaces, case and Unicode forms are"


def _is_missing(value: object) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA: it has no truth
        return True
    except ValueError:  # an array
        return False


def _kind(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "true or false"
    named = {Integral: "whole numbers", Real: "numbers", str: "text"}
    return next((name for kind, name in named.items() if isinstance(value, kind)), type(value).__name__)
