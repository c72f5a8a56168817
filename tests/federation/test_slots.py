"""Ids and their slots."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.federation.tables import slots as slots_module
from dvfl.federation.tables.slots import find_slots

TABLE, CSV = Path("table.parquet"), Path("table.csv")


def write(path: Path, ids: Any, slots: Any) -> Path:
    pq.write_table(pa.table({"id": ids, "slot": slots}), path)
    return path


def find(ids: Any, slots: Path, table: Path = TABLE) -> list[int]:
    column = ids if isinstance(ids, pa.Array) else pa.array(ids)
    return find_slots(pa.chunked_array([column[:1], column[1:]]), table, "id", slots).tolist()


def refused(ids: Any, slots: Path, table: Path = TABLE) -> str:
    with pytest.raises(UserError) as caught:
        find(ids, slots, table)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "slots_kind"),
    [
        (pa.string(), pa.string()),
        (pa.large_string(), pa.string()),
        (pa.string(), pa.large_string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.string(), pa.dictionary(pa.int8(), pa.string())),
        (pa.int32(), pa.int64()),
        (pa.uint8(), pa.int16()),
        (pa.float64(), pa.int64()),
    ],
)
def test_ids_of_one_sort_meet_however_the_files_hold_them(kind: Any, slots_kind: Any, tmp_path: Path) -> None:
    text = "string" in str(kind)
    ids = [str(number) if text else number for number in (3, 1, 2)]
    # An order of their own, and one id that only others have.
    known = [str(number) if text else number for number in (1, 2, 3, 4)]
    path = write(tmp_path / "slots.parquet", pa.array(known, slots_kind), [10, 20, 30, 0])
    assert find(pa.array(ids, kind), path) == [30, 10, 20]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=5), min_size=1, max_size=40, unique=True), st.integers(1, 50), st.randoms())
def test_every_id_finds_its_slot_whatever_is_looked_up_at_once(ids: list[str], at_once: int, luck: Any) -> None:
    pairs = list(zip(ids, range(len(ids)), strict=True))
    luck.shuffle(pairs)
    wanted = luck.sample(ids, luck.randint(1, len(ids)))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots_module, "_AT_ONCE", at_once)
        path = write(Path(folder) / "slots.parquet", *zip(*pairs, strict=True))
        assert find(wanted, path) == [ids.index(one) for one in wanted]


def test_ids_in_csv_meet_numbers_and_text(tmp_path: Path) -> None:
    numbers = write(tmp_path / "numbers.parquet", [1, 20, -3], [0, 1, 2])
    text = write(tmp_path / "text.parquet", ["1", "20", "007"], [0, 1, 2])
    assert find(["20", "-3"], numbers, CSV) == [1, 2]
    assert find(["007", "1"], text, CSV) == [2, 0]


@pytest.mark.parametrize("ids", [["1", "007"], ["1", "x"], [str(10**30), "1"]])
def test_text_in_csv_that_is_no_whole_number_does_not_meet_numbers(ids: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "slots.parquet", [1, 7], [0, 1])
    assert "table.csv: the ids in 'id' are text and those in" in refused(ids, path, CSV)


def test_ids_of_two_sorts_in_parquet_are_reported_as_such(tmp_path: Path) -> None:
    numbers = write(tmp_path / "numbers.parquet", [1, 2], [0, 1])
    text = write(tmp_path / "text.parquet", ["1", "2"], [0, 1])
    assert "are text and those in" in refused(["1", "2"], numbers)
    assert "are whole numbers and those in" in refused([1, 2], text)


@pytest.mark.parametrize("ids", [[1.5, 2.0], pa.array([2**63, 1], pa.uint64())])
def test_numbers_that_cannot_be_ids_are_refused(ids: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "slots.parquet", [1, 2], [0, 1])
    assert "table.parquet: the ids in 'id' are not all whole numbers of 64 bits" in refused(ids, path)


@pytest.mark.parametrize("ids", [[[1], [2]], [True, False], [b"a", b"b"]])
def test_other_types_of_ids_are_refused(ids: list[Any], tmp_path: Path) -> None:
    path = write(tmp_path / "slots.parquet", [1, 2], [0, 1])
    assert "use whole numbers or text" in refused(ids, path)


def test_ids_without_a_slot_are_counted_and_not_printed(tmp_path: Path) -> None:
    message = refused(["known", "secret"], write(tmp_path / "slots.parquet", ["known"], [0]))
    assert "table.parquet: 1 of 2 rows have an 'id' without a slot in" in message and "secret" not in message
    none = write(tmp_path / "slots.parquet", pa.array([], pa.string()), pa.array([], pa.int32()))
    assert "2 of 2 rows" in refused(["a", "b"], none)


def test_missing_ids_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "slots.parquet", ["a"], [0])
    assert "1 of 2 rows have no 'id'" in refused(["a", None], path)


def test_repeated_ids_are_counted_and_not_printed(tmp_path: Path) -> None:
    message = refused(["secret", "b", "secret"], write(tmp_path / "slots.parquet", ["secret", "b"], [0, 1]))
    assert "table.parquet: 1 of 3 rows repeat an earlier 'id'" in message and "secret" not in message


@pytest.mark.parametrize("at_once", [1, 10])
def test_an_id_with_two_slots_is_refused(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots_module, "_AT_ONCE", at_once)
    path = write(tmp_path / "slots.parquet", ["a", "b", "a"], [0, 1, 2])
    assert "slots.parquet: an id occurs in it more than once; align" in refused(["b", "a"], path)


def test_a_slot_with_two_ids_is_refused_even_where_the_table_lacks_them(tmp_path: Path) -> None:
    path = write(tmp_path / "slots.parquet", ["a", "b", "c"], [0, 1, 1])
    assert "slots.parquet: 1 ids have the slot of another" in refused(["a"], path)


@pytest.mark.parametrize("slots", [[0, -1], [0, 2**31], [0, None]])
def test_slots_that_are_no_slots_are_refused(slots: list[Any], tmp_path: Path) -> None:
    path = write(tmp_path / "slots.parquet", ["a", "b"], slots)
    assert "the column 'slot' must hold whole numbers from 0 to 2147483647" in refused(["a"], path)


def test_the_largest_slot_is_one(tmp_path: Path) -> None:
    assert find(["a"], write(tmp_path / "slots.parquet", ["a"], [2**31 - 1])) == [2**31 - 1]


def test_a_file_of_slots_that_is_none_is_named(tmp_path: Path) -> None:
    gone, broken, other = tmp_path / "gone.parquet", tmp_path / "broken.parquet", tmp_path / "other.parquet"
    broken.write_bytes(b"PAR1 nothing")
    pq.write_table(pa.table({"id": [1], "slots": [1]}), other)
    assert "gone.parquet is not there" in refused([1], gone)
    assert "broken.parquet cannot be read as .parquet" in refused([1], broken)
    assert "other.parquet has no column 'slot'; it has id, slots; did you mean 'slots'?" in refused([1], other)
    text = write(tmp_path / "text.parquet", [1], ["1"])
    assert "text.parquet: the column 'slot' is of the type string" in refused([1], text)
    (tmp_path / "slots.csv").write_text("id,slot\n1,1\n")
    assert "slots.csv: slots lie in a .parquet file" in refused([1], tmp_path / "slots.csv")


def test_slots_are_int32(tmp_path: Path) -> None:
    path = write(tmp_path / "slots.parquet", ["a"], [5])
    assert find_slots(pa.chunked_array([["a"]]), TABLE, "id", path).dtype == np.int32
