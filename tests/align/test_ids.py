"""Ids become bytes that all parties agree on, or are refused without being shown."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.align.ids import IdRules, check_commitment, commitment, evened, from_objects, normalised
from dvfl.errors import UserError

KEEP, FOLD = IdRules("keep"), IdRules("fold")
SALT = bytes(range(32))


def ids(values: Any, rules: IdRules = KEEP, kind: Any = None) -> list[bytes]:
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    return normalised(pa.chunked_array([array[:1], array[1:]], array.type), rules, "table.parquet", "patient")


def refused(values: Any, rules: IdRules = KEEP, kind: Any = None) -> str:
    with pytest.raises(UserError) as caught:
        ids(values, rules, kind)
    said = str(caught.value)
    assert "\n" not in said and "table.parquet" in said and "'patient'" in said
    return said


@pytest.mark.parametrize(
    ("text", "rules", "right"),
    [
        ("  a1\t", KEEP, "a1"),
        ("\x1fa1\n", KEEP, "a1"),
        ("\u00a0\uff21\uff11\u3000", KEEP, "A1"),
        ("e\u0301", KEEP, "\u00e9"),
        ("ﬁ-7", KEEP, "fi-7"),
        ("Straße", KEEP, "Straße"),
        ("Straße", FOLD, "strasse"),
        ("AbC", FOLD, "abc"),
        ("007", KEEP, "007"),
        ("a  b", KEEP, "a  b"),
    ],
)
def test_spaces_unicode_forms_and_case_are_evened_out(text: str, rules: IdRules, right: str) -> None:
    assert ids([text, "other"], rules) == [right.encode(), b"other"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=6), st.text("aB 1\t\x1d\x0b", max_size=6)), max_size=12),
    st.sampled_from([KEEP, FOLD]),
)
def test_columns_are_evened_out_as_single_ids_are(texts: list[str], rules: IdRules) -> None:
    wanted = {even: text for text in texts if (even := evened(text, rules))}
    assert ids(list(wanted.values()), rules, pa.string()) == [even.encode() for even in wanted]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([7, 12, -3], pa.int8()),
        pa.array([7, 12, -3], pa.int64()),
        pa.array([7.0, 12.0, -3.0], pa.float32()),
        pa.array([Decimal("7.00"), Decimal("12.00"), Decimal("-3.00")]),
        pa.array(["7", "12", "-3"], pa.large_string()),
        pa.array(["7", "12", "-3"], pa.string_view()),
        pa.array(["7", "12", "-3"]).dictionary_encode(),
        pa.array(["x", "7", "12", "-3"])[1:],
    ],
)
def test_whole_numbers_and_their_text_are_the_same_ids(column: pa.Array) -> None:
    assert ids(column) == [b"7", b"12", b"-3"]


def test_large_whole_numbers_keep_every_digit() -> None:
    assert ids(pa.array([2**64 - 1], pa.uint64())) == [b"18446744073709551615"]
    assert "too large to be exact" in refused([2.0**60])


def test_no_ids_are_no_ids() -> None:
    assert ids([], kind=pa.string()) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["secret", None, None], "2 of 3 rows have no"),
        ([7.0, None, float("nan")], "2 of 3 rows have no"),
        (["secret", "  ", "\u3000"], "2 of 3 rows have an empty"),
        (["secret", "secret", "secret", "b"], "2 of 4 rows repeat an earlier 'patient'; each"),
        (["secret", " secret", "b", "b"], "2 of 4 rows repeat an earlier 'patient', 1 of them only once spaces"),
        ([0.25, 1.0], "looks like a feature"),
        ([float("inf"), 1.0], "looks like a feature"),
        ([Decimal("0.25")], "looks like a feature"),
        ([True, False], "looks like a feature"),
        ([datetime.datetime(2020, 1, 2)], "looks like a feature"),
        ([datetime.date(2020, 1, 2)], "looks like a feature"),
        ([[1], [2]], "use whole numbers or text"),
        ([{"a": 1}], "use whole numbers or text"),
        ([b"secret"], "use whole numbers or text"),
    ],
)
def test_what_cannot_be_ids_is_refused_with_counts_and_no_id(values: list[Any], said: str) -> None:
    message = refused(values)
    assert said in message and "secret" not in message and "0.25" not in message and "2020" not in message


def test_ids_that_differ_in_case_alone_are_repeats_where_case_is_folded() -> None:
    assert len(ids(["Ab", "ab"])) == 2
    assert "1 of 2 rows repeat an earlier 'patient', 1 of them only once spaces, case" in refused(["Ab", "ab"], FOLD)


def test_a_union_of_types_is_refused() -> None:
    mixed = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    assert "of mixed types" in refused(mixed)


def test_objects_become_a_column_unless_their_types_are_mixed() -> None:
    assert ids(from_objects(["b", "a"], "table", "id").chunk(0)) == [b"b", b"a"]
    assert from_objects([7, None, 8], "table", "id").null_count == 1
    assert from_objects(["a", float("nan"), pd.NA], "table", "id").null_count == 2
    assert ids(from_objects([np.int64(7), 8], "table", "id").chunk(0)) == [b"7", b"8"]
    with pytest.raises(UserError, match="mixed types \\(text, whole numbers\\)") as caught:
        from_objects(["secret", 7], "table", "id")
    assert "secret" not in str(caught.value)
    with pytest.raises(UserError, match="are whole numbers; use"):
        from_objects([2**70], "table", "id")


def test_parties_that_normalise_alike_commit_alike() -> None:
    check_commitment(commitment(KEEP, SALT), KEEP, SALT, "guest-1")
    assert commitment(KEEP, SALT) != commitment(KEEP, bytes(32))


@pytest.mark.parametrize(
    ("theirs", "said"),
    [(commitment(FOLD, SALT), "case = 'fold', and here it is 'keep'"), (bytes(32), "another version")],
)
def test_another_normalisation_is_refused_by_name(theirs: bytes, said: str) -> None:
    with pytest.raises(UserError, match="guest-2 normalises ids differently") as caught:
        check_commitment(theirs, KEEP, SALT, "guest-2")
    assert said in str(caught.value)


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(UserError, match="'keep' or 'fold' is right"):
        IdRules("lower")  # type: ignore[arg-type]
