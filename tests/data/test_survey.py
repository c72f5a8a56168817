"""What is learned from blocks is what `ColumnEncoder.fit` learns from the whole."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.data import ColumnEncoder
from dvfl.data.tables import survey
from dvfl.data.tables.kinds import Kind, kind_of
from dvfl.data.tables.survey import Survey
from dvfl.errors import UserError


def surveyed(frame: pd.DataFrame, rows_a_block: int) -> Survey:
    kinds: dict[str, Kind] = {name: kind_of(frame[name], name) for name in frame}
    found = Survey(kinds)
    for start in range(0, len(frame), rows_a_block):
        found.add(frame.iloc[start : start + rows_a_block])
    return found


def assert_alike(found: ColumnEncoder, whole: ColumnEncoder) -> None:
    """Exactly, but for means and deviations, which sums of another order round otherwise: where values are much larger
    than their spread (times a microsecond apart), by what floating point tells apart there."""
    assert found.names == whole.names and found.dropped == whole.dropped
    for column, like in zip(found.columns, whole.columns, strict=True):
        assert (column.kind, column.missing, column.levels) == (like.kind, like.missing, like.levels)
        assert column.mean == pytest.approx(like.mean, rel=1e-9, abs=1e-14)
        assert column.std == pytest.approx(like.std, rel=1e-9, abs=np.spacing(abs(like.mean)))


def column(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(st.none(), values), min_size=12, max_size=12)


COLUMNS = st.one_of(
    column(st.floats(-100, 100, width=16)),
    column(st.integers(0, 1)),
    column(st.booleans()),
    column(st.sampled_from(["a", "b", "c d"])),
    column(st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2030, 1, 1))),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(COLUMNS, min_size=1, max_size=4), st.integers(1, 12))
def test_blocks_of_any_size_teach_what_the_whole_teaches(columns: list[list[Any]], rows_a_block: int) -> None:
    frame = pd.DataFrame({f"c{i}": values for i, values in enumerate(columns)}).assign(varies=range(12))
    assert_alike(surveyed(frame, rows_a_block).encoder(), ColumnEncoder.fit(frame))


def test_the_most_frequent_levels_are_those_of_all_blocks_together() -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": [f"v{number}" for number in (draw.exponential(40, 5000)).astype(int)]})
    whole = ColumnEncoder.fit(frame)
    assert whole.columns[0].other
    assert surveyed(frame, 17).encoder() == whole


def test_infinite_values_are_counted_over_all_blocks_and_the_first_is_named_by_its_row() -> None:
    frame = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0)})
    frame.loc[[13, 28], "b"] = [np.inf, -np.inf]
    with pytest.raises(UserError, match="column 'b' holds infinite values: 2, the first in row 14"):
        surveyed(frame, 10).encoder()


def test_a_column_with_another_text_in_every_row_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(survey, "MOST_LEVELS", 50)
    frame = pd.DataFrame({"few": ["x", "y"] * 50, "address": [f"street {i}" for i in range(100)]})
    with pytest.raises(UserError, match="'address' holds 50 different texts and more; take out"):
        surveyed(frame, 10)


def test_columns_that_tell_nothing_are_refused_as_ever() -> None:
    with pytest.raises(UserError, match="no column tells rows apart"):
        surveyed(pd.DataFrame({"a": [1, 1], "t": ["x", "x"]}), 1).encoder()
