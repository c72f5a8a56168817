import datetime
import decimal
import json
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.data import ColumnEncoder
from dvfl.errors import UserError


def encode(values, **kwargs) -> tuple[ColumnEncoder, np.ndarray]:
    frame = pd.DataFrame({"a": pd.Series(values, **kwargs)})
    encoder = ColumnEncoder.fit(frame)
    return encoder, encoder.transform(frame)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float32", "float64", "Int64", "Float64", "object"])
def test_numbers_of_every_type_are_standardised(dtype):
    encoder, z = encode([1, 2, 3, 6], dtype=dtype)
    assert encoder.names == ("a",) and z.dtype == np.float32
    assert np.allclose(z[:, 0], (np.array([1, 2, 3, 6]) - 3) / np.std([1, 2, 3, 6]))


def test_decimals_are_numbers():
    encoder, z = encode([decimal.Decimal("1.5"), decimal.Decimal("2.5")])
    assert encoder.names == ("a",) and z[:, 0].tolist() == [-1, 1]


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object"])
def test_booleans_become_zero_and_one(dtype):
    encoder, z = encode([True, False, True], dtype=dtype)
    assert encoder.names == ("a",) and z[:, 0].tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_text_becomes_one_column_a_level(dtype):
    encoder, z = encode(["red", "blue", "red"], dtype=dtype)
    assert encoder.names == ("a = blue", "a = red")
    assert z.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_times_are_standardised_seconds():
    days = ["2024-01-01", "2024-01-02", "2024-01-04"]
    expected = (np.array([0, 1, 3]) - 4 / 3) / np.std([0, 1, 3])
    for values in (
        pd.to_datetime(days),
        pd.to_datetime(days).tz_localize("Europe/Berlin"),
        [datetime.date.fromisoformat(day) for day in days],
        pd.to_timedelta([0, 1, 3], unit="D"),
    ):
        encoder, z = encode(values)
        assert encoder.names == ("a",)
        assert np.allclose(z[:, 0], expected, atol=1e-6)


def test_a_far_future_that_means_open_is_a_time():
    _, z = encode(np.array(["2020-01-01", "9999-12-31"], "datetime64[s]"))
    assert z[:, 0].tolist() == [-1, 1]


def test_missing_numbers_become_the_mean_and_are_told():
    encoder, z = encode([1.0, None, 3.0])
    assert encoder.names == ("a", "a is missing")
    assert z.tolist() == [[-1, 0], [0, 1], [1, 0]]
    assert encoder.missing == {"a": 1}


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, None, 3], "Int64"),
        ([True, None, False], "boolean"),
        (["x", None, "y"], "object"),
        (["x", None, "y"], "category"),
    ],
)
def test_missing_values_of_every_type_are_told(values, dtype):
    encoder, z = encode(values, dtype=dtype)
    assert encoder.names[-1] == "a is missing"
    assert z[:, -1].tolist() == [0, 1, 0]
    assert (z[1, :-1] == 0).all()


def test_missing_times_are_told():
    _, z = encode(pd.to_datetime(["2024-01-01", None, "2024-01-03"]))
    assert z.tolist() == [[-1, 0], [0, 1], [1, 0]]


def test_a_value_first_missing_after_training_becomes_zero_without_a_column():
    encoder, _ = encode([1.0, 3.0])
    assert encoder.transform(pd.DataFrame({"a": [np.nan, 3.0]})).tolist() == [[0], [1]]


def test_constant_and_empty_columns_are_dropped_and_listed():
    frame = pd.DataFrame({"a": [1, 2], "k": [7, 7], "t": ["x", "x"], "n": [None, None], "b": [True, True]})
    encoder = ColumnEncoder.fit(frame)
    assert encoder.names == ("a",) and encoder.dropped == ("k", "t", "n", "b")
    assert encoder.transform(frame[["a"]]).shape == (2, 1)


def test_a_constant_that_is_sometimes_missing_keeps_its_indicator():
    encoder, z = encode([7.0, None, 7.0])
    assert encoder.names == ("a is missing",) and encoder.dropped == ()
    assert z[:, 0].tolist() == [0, 1, 0]


def test_rare_levels_share_one_column():
    values = [f"v{i:03}" for i in range(100)] + [f"v{i:03}" for i in range(64)]
    encoder, z = encode(values)
    assert encoder.width == 65 and encoder.names[-1] == "a = (other)"
    assert encoder.names[:64] == tuple(f"a = v{i:03}" for i in range(64))
    assert z[64:100, -1].all() and not z[:64, -1].any()
    assert (z.sum(axis=1) == 1).all()


def test_an_unseen_level_is_other_where_there_is_one_and_nothing_otherwise():
    many, _ = encode([f"v{i}" for i in range(70)])
    few, _ = encode(["x", "y"])
    new = pd.DataFrame({"a": ["never seen"]})
    assert many.transform(new)[0].tolist() == [0.0] * 64 + [1.0]
    assert few.transform(new)[0].tolist() == [0.0, 0.0]


def test_levels_read_as_numbers_the_second_time_are_still_known():
    encoder, _ = encode(["1", "2", "x"])
    assert encoder.transform(pd.DataFrame({"a": [1.0, 2.0]})).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_columns_keep_their_order_when_kinds_alternate():
    frame = pd.DataFrame({"n": [1.0, 3.0], "t": ["x", "y"], "b": [True, False], "m": [None, 2.0]})
    encoder = ColumnEncoder.fit(frame)
    assert encoder.names == ("n", "t = x", "t = y", "b", "m is missing")
    assert encoder.transform(frame).tolist() == [[-1, 1, 0, 1, 1], [1, 0, 1, 0, 0]]


def test_the_order_of_columns_and_extra_ones_do_not_matter():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]})
    encoder = ColumnEncoder.fit(frame)
    other = frame[["b", "a"]].assign(extra=np.inf)
    assert np.array_equal(encoder.transform(other), encoder.transform(frame))


def test_infinite_values_are_refused_with_column_row_and_number():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, np.inf, -np.inf]})
    with pytest.raises(UserError, match=r"column 'b' holds infinite values: 2, the first in row 2"):
        ColumnEncoder.fit(frame)


def test_infinite_values_are_refused_after_training_too():
    encoder, _ = encode([1.0, 2.0])
    with pytest.raises(UserError, match="column 'a' holds infinite values: 1, the first in row 3"):
        encoder.transform(pd.DataFrame({"a": [1.0, 2.0, np.inf]}))


def test_a_column_that_is_gone_is_named():
    encoder = ColumnEncoder.fit(pd.DataFrame({"a": [1, 2], "b": [1, 2]}))
    with pytest.raises(UserError, match="lacks the column 'b'"):
        encoder.transform(pd.DataFrame({"a": [1, 2]}))


def test_numbers_that_turn_into_text_are_refused():
    encoder, _ = encode([1, 2])
    with pytest.raises(UserError, match="column 'a' held numbers in training and now holds text"):
        encoder.transform(pd.DataFrame({"a": ["1", "two"]}))


def test_booleans_may_come_as_zero_and_one_but_not_as_two():
    encoder, _ = encode([True, False])
    assert encoder.transform(pd.DataFrame({"a": [1, 0]})).tolist() == [[1], [0]]
    with pytest.raises(UserError, match="true or false"):
        encoder.transform(pd.DataFrame({"a": [2, 0]}))


@pytest.mark.parametrize("frame", [pd.DataFrame({"a": [1, 1]}), pd.DataFrame(index=[0, 1]), pd.DataFrame({"a": []})])
def test_a_table_that_tells_nothing_is_refused(frame):
    with pytest.raises(UserError):
        ColumnEncoder.fit(frame)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(UserError, match="'a' stands for more than one"):
        ColumnEncoder.fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))


def test_nested_values_are_refused():
    with pytest.raises(UserError, match="column 'a' holds lists"):
        ColumnEncoder.fit(pd.DataFrame({"a": [[1], [2]]}))


def test_very_large_numbers_are_standardised_without_overflow():
    _, z = encode([1.7e308, -1.7e308, 0.0])
    assert np.allclose(z[:, 0], np.array([1, -1, 0]) / np.std([1, -1, 0]))


def test_a_number_far_beyond_training_stays_finite():
    encoder, _ = encode([1.0, 2.0])
    assert np.isfinite(encoder.transform(pd.DataFrame({"a": [1e300]}))).all()


def test_a_saved_encoder_that_is_damaged_is_refused():
    for damaged in ({}, {"columns": [{"name": "a"}]}, {"columns": 3}):
        with pytest.raises(UserError, match="not a saved column encoder"):
            ColumnEncoder.from_dict(damaged)


def test_an_array_of_two_hundred_columns_is_encoded_well_under_a_second_of_work():
    x = np.random.default_rng(0).normal(size=(10_000, 200))
    start = time.thread_time()
    frame = pd.DataFrame(x, columns=[str(i) for i in range(200)])
    z = ColumnEncoder.fit(frame).transform(frame)
    assert time.thread_time() - start < 0.8
    assert z.shape == x.shape and z.flags.c_contiguous


VALUES = st.one_of(
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=6, max_size=6),
    st.lists(st.integers(-(2**60), 2**60), min_size=6, max_size=6),
    st.lists(st.one_of(st.none(), st.booleans()), min_size=6, max_size=6),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=6, max_size=6),
    st.lists(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)), min_size=6, max_size=6),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_an_encoder_through_json_encodes_alike_and_always_finitely(columns):
    frame = pd.DataFrame({f"c{i}": values for i, values in enumerate(columns)}).assign(varies=range(6))
    encoder = ColumnEncoder.fit(frame.iloc[:4])
    again = ColumnEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
    z = encoder.transform(frame.iloc[:4])
    assert again == encoder and again.names == encoder.names
    assert np.array_equal(again.transform(frame.iloc[:4]), z)
    assert z.shape == (4, encoder.width) and np.isfinite(z).all()
