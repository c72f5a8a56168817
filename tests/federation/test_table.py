"""A guest's table: prepared once, the same numbers as from the whole frame, read by rows."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.data import ColumnEncoder
from dvfl.data.tables.reading import read_table
from dvfl.errors import RunFailed, UserError
from dvfl.federation.tables import table as table_module
from dvfl.federation.tables.table import Schema, Table, Values, check_schema, open_table

ROWS = 400


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.data.tables.csv_blocks.BLOCK", 4096)
    monkeypatch.setattr("dvfl.data.tables.blocks.VALUES", 1)


@pytest.fixture(params=["held", "read"])
def held_or_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "read":
        monkeypatch.setattr(table_module, "IN_MEMORY", 0)


def bank(rows: int = ROWS) -> pd.DataFrame:
    i = np.arange(rows)
    frame = pd.DataFrame(
        {
            "id": [f"p{(number * 37) % rows}" for number in i],
            "income": i * 10.5,
            "city": np.where(i % 3, "Ulm", "Bonn"),
            "member": i % 5 == 0,
            "since": pd.date_range("2020-01-01", periods=rows),
            "constant": 7,
        }
    )
    frame.loc[i % 11 == 0, "income"] = None
    return frame


def write(frame: pd.DataFrame, path: Path) -> Path:
    (frame.to_csv if path.suffix == ".csv" else frame.to_parquet)(path, index=False)
    return path


@pytest.fixture
def slots(tmp_path: Path) -> Path:
    known = pd.DataFrame({"id": [f"p{i}" for i in range(ROWS)], "slot": np.arange(ROWS) + 100})
    return write(known, tmp_path / "slots.parquet")


def opened(path: Path, slots: Path, *, values: Values = "standardise", schema: Schema | None = None) -> Table:
    prepared = path.parent / f"prepared-{path.name}"
    return open_table(path, id_column="id", slots=slots, prepared=prepared, values=values, schema=schema)


def refused(path: Path, slots: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        opened(path, slots, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Preparing.


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_numbers_are_those_of_the_whole_frame(
    suffix: str, slots: Path, small_blocks: None, held_or_read: None, tmp_path: Path
) -> None:
    path = write(bank(), tmp_path / f"bank{suffix}")
    table = opened(path, slots)
    frame = read_table(path, "id").columns
    whole = ColumnEncoder.fit(frame)
    assert (table.rows, table.width) == (ROWS, whole.width)
    found = table.take(np.arange(ROWS))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, whole.transform(frame), rtol=1e-6, atol=1e-6)
    assert ColumnEncoder.from_dict(table.schema["encoder"]).names == whole.names


def test_every_row_has_the_slot_of_its_id(slots: Path, tmp_path: Path) -> None:
    table = opened(write(bank(), tmp_path / "bank.csv"), slots)
    assert table.slots.dtype == np.int32
    assert table.slots.tolist() == [int(one[1:]) + 100 for one in bank()["id"]]


def test_a_schema_is_plain_data_and_encodes_test_rows_as_training_rows(slots: Path, tmp_path: Path) -> None:
    table = opened(write(bank(), tmp_path / "bank.csv"), slots)
    schema = json.loads(json.dumps(table.schema, allow_nan=False))
    tested = opened(write(bank().iloc[:30], tmp_path / "test.csv"), slots, schema=schema)
    assert tested.rows == 30 and tested.schema == table.schema
    np.testing.assert_array_equal(tested.take(np.arange(30)), table.take(np.arange(30)))


def test_text_that_happens_to_be_numbers_in_test_rows_is_still_text(slots: Path, tmp_path: Path) -> None:
    frame = bank().assign(city=np.where(np.arange(ROWS) % 3, "10", "north"))
    table = opened(write(frame, tmp_path / "bank.csv"), slots)
    tested = opened(write(frame[frame["city"] == "10"], tmp_path / "test.csv"), slots, schema=table.schema)
    rows = np.flatnonzero(frame["city"] == "10")
    np.testing.assert_array_equal(tested.take(np.arange(tested.rows)), table.take(rows))


# Reading rows.


@pytest.fixture(scope="module")
def positioned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, np.ndarray]:
    folder = tmp_path_factory.mktemp("positioned")
    known = pd.DataFrame({"id": [f"p{i}" for i in range(ROWS)], "slot": np.arange(ROWS)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "IN_MEMORY", 0)
        table = opened(write(bank(), folder / "bank.parquet"), write(known, folder / "slots.parquet"))
    return table, table.take(np.arange(ROWS))


@given(rows=st.lists(st.integers(0, ROWS - 1), max_size=80))
def test_any_rows_come_in_the_order_asked_for(rows: list[int], positioned: tuple[Table, np.ndarray]) -> None:
    table, whole = positioned
    np.testing.assert_array_equal(table.take(np.array(rows, np.int32)), whole[rows])


def test_a_batch_is_the_callers_own(slots: Path, held_or_read: None, tmp_path: Path) -> None:
    table = opened(write(bank(), tmp_path / "bank.parquet"), slots)
    before = table.take(np.arange(10))
    table.take(np.arange(10))[:] = 99
    np.testing.assert_array_equal(table.take(np.arange(10)), before)


@pytest.mark.parametrize("row", [-1, ROWS])
def test_a_row_that_is_not_there_is_an_error(row: int, slots: Path, held_or_read: None, tmp_path: Path) -> None:
    table = opened(write(bank(), tmp_path / "bank.parquet"), slots)
    with pytest.raises(IndexError):
        table.take(np.array([0, row]))


def test_a_file_cut_short_under_a_running_guest_is_named(
    slots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "IN_MEMORY", 0)
    table = opened(write(bank(), tmp_path / "bank.parquet"), slots)
    os.truncate(tmp_path / "prepared-bank.parquet" / "prepared.f32", 100)
    with pytest.raises(UserError, match="has become shorter; remove its folder"):
        table.take(np.array([ROWS - 1]))


RESIDENT = Path("/proc/self/statm")


@pytest.mark.skipif(not RESIDENT.exists(), reason="how much memory is resident is asked of Linux")
def test_reading_every_row_keeps_the_table_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "IN_MEMORY", 0)
    rows, width = 20_000, 1000  # 80 MB
    np.zeros((rows, width), np.float32).tofile(tmp_path / "prepared.f32")
    np.arange(rows, dtype=np.int32).tofile(tmp_path / "prepared.slots")
    table = Table(tmp_path, rows, width, {}, "")
    table.take(np.arange(50))
    before = int(RESIDENT.read_text().split()[1])
    for batch in np.random.default_rng(0).permutation(rows).reshape(-1, 50):
        table.take(batch)
    pages = int(RESIDENT.read_text().split()[1]) - before
    assert pages * os.sysconf("SC_PAGESIZE") < 8 << 20


# Prepared once.


@pytest.fixture
def prepared_count(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever a table is prepared."""
    count: list[int] = []
    real = table_module._write

    def counting(*arguments: Any) -> None:
        count.append(1)
        real(*arguments)

    monkeypatch.setattr(table_module, "_write", counting)
    return count


def test_an_unchanged_table_is_prepared_once(slots: Path, prepared_count: list[int], tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    first = opened(path, slots)
    again, resumed = opened(path, slots), opened(path, slots, schema=first.schema)
    assert len(prepared_count) == 1
    for table in (again, resumed):
        assert table.schema == first.schema
        np.testing.assert_array_equal(table.slots, first.slots)
        np.testing.assert_array_equal(table.take(np.arange(ROWS)), first.take(np.arange(ROWS)))


def test_a_changed_table_is_prepared_again(slots: Path, prepared_count: list[int], tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    first = opened(path, slots)
    write(bank().assign(income=lambda frame: frame["income"] * -1), path)
    assert opened(path, slots).take(np.array([1]))[0, 0] == -first.take(np.array([1]))[0, 0]
    assert len(prepared_count) == 2


def test_changed_slots_are_looked_up_again(slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    before = opened(path, slots).slots
    write(pd.read_parquet(slots).assign(slot=lambda frame: frame["slot"] + 1), slots)
    np.testing.assert_array_equal(opened(path, slots).slots, before + 1)


@pytest.mark.parametrize("name", ["prepared.f32", "prepared.slots", "prepared.json"])
def test_what_is_lost_or_damaged_is_prepared_again(name: str, slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    expected = opened(path, slots).take(np.arange(ROWS))
    damaged = tmp_path / "prepared-bank.csv" / name
    for damage in (damaged.unlink, lambda: damaged.write_bytes(b"{}")):
        damage()
        np.testing.assert_array_equal(opened(path, slots).take(np.arange(ROWS)), expected)


def test_rows_encoded_by_another_schema_do_not_pass_for_training_rows(slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    other = opened(write(bank().iloc[:50], tmp_path / "other.csv"), slots)
    opened(path, slots, schema=other.schema)
    table = opened(path, slots)
    assert table.schema != other.schema
    assert abs(np.nanmean(table.take(np.arange(ROWS))[:, 0])) < 0.1


def test_a_start_that_fails_leaves_nothing_that_passes_for_whole(slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    opened(path, slots)
    write(bank().assign(income=np.inf), path)
    refused(path, slots)
    write(bank(), path)
    assert opened(path, slots).rows == ROWS
    names = sorted(one.name for one in (tmp_path / "prepared-bank.csv").iterdir())
    assert names == ["prepared.f32", "prepared.json", "prepared.slots"]


def test_what_a_killed_start_left_behind_is_removed(slots: Path, tmp_path: Path) -> None:
    left = tmp_path / "prepared-bank.csv" / ".prepared.f32.abc"
    left.parent.mkdir()
    left.write_bytes(b"half")
    opened(write(bank(), tmp_path / "bank.csv"), slots)
    assert not left.exists()


def test_a_folder_that_cannot_be_written_is_named(slots: Path, tmp_path: Path) -> None:
    (tmp_path / "prepared-bank.csv").write_text("a file where the folder should be")
    with pytest.raises(RunFailed, match=r"prepared-bank\.csv cannot be written \(File exists\)"):
        opened(write(bank(), tmp_path / "bank.csv"), slots)


# Unit values.


def test_unit_values_are_taken_as_they_are_with_constant_columns(slots: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (ROWS, 5)).astype(np.float32) / np.float32(255)
    x[:, 2] = 0
    frame = pd.DataFrame(x, columns=list("abcde")).assign(id=bank()["id"])
    for suffix in (".csv", ".parquet"):
        table = opened(write(frame, tmp_path / f"x{suffix}"), slots, values="unit")
        np.testing.assert_array_equal(table.take(np.arange(ROWS)), x)


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ([0.5, "x"], "the column 'bad' holds text"),
        ([True, False], "the column 'bad' holds true or false"),
        ([0.0, 1.5], "the column 'bad' holds numbers from 0 to 1.5"),
        ([-0.25, 1.0], "the column 'bad' holds numbers from -0.25 to 1"),
        ([0.5, None], "the column 'bad' lacks 200 of 400 values"),
    ],
)
def test_columns_that_are_not_in_the_unit_range_are_refused_by_name(
    column: list[Any], says: str, slots: Path, tmp_path: Path
) -> None:
    frame = bank()[["id"]].assign(good=0.5, bad=column * (ROWS // 2))
    message = refused(write(frame, tmp_path / "x.csv"), slots, values="unit")
    assert says in message and "x.csv" in message


def test_unit_test_rows_are_held_to_the_range_too(slots: Path, tmp_path: Path) -> None:
    frame = bank()[["id"]].assign(a=np.linspace(0, 1, ROWS))
    table = opened(write(frame, tmp_path / "x.csv"), slots, values="unit")
    wide = write(frame.assign(a=2.0), tmp_path / "test.csv")
    assert "from 2 to 2" in refused(wide, slots, values="unit", schema=table.schema)


# What is wrong.


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_infinite_values_are_named_by_the_files_row(
    suffix: str, slots: Path, small_blocks: None, tmp_path: Path
) -> None:
    frame = bank()
    frame.loc[[317, 350], "income"] = np.inf
    message = refused(write(frame, tmp_path / f"bank{suffix}"), slots)
    assert f"bank{suffix}: the column 'income' holds infinite values: 2, the first in row 318" in message


def test_ids_are_checked_before_the_columns(slots: Path, tmp_path: Path) -> None:
    twice = pd.concat([bank(), bank().iloc[:3]])
    assert "bank.csv: 3 of 403 rows repeat an earlier 'id'" in refused(write(twice, tmp_path / "bank.csv"), slots)
    strange = bank().assign(id=lambda frame: "x" + frame["id"])
    assert "400 of 400 rows have an 'id' without a slot" in refused(write(strange, tmp_path / "bank.csv"), slots)


def test_files_that_are_not_there_are_named(slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    assert "gone.csv is not there" in refused(tmp_path / "gone.csv", slots)
    assert "gone.parquet is not there" in refused(path, tmp_path / "gone.parquet")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    path.chmod(0)
    assert "bank.csv cannot be read (Permission denied)" in refused(path, slots)


def test_a_table_without_the_id_or_without_columns_says_so(slots: Path, tmp_path: Path) -> None:
    assert "did you mean 'Id'?" in refused(write(bank().rename(columns={"id": "Id"}), tmp_path / "a.csv"), slots)
    assert "b.csv has no column besides 'id'" in refused(write(bank()[["id"]], tmp_path / "b.csv"), slots)


def test_a_table_that_is_written_while_it_is_read_is_refused(
    slots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    learn = table_module._learn

    def meanwhile(*arguments: Any) -> Any:
        learned = learn(*arguments)
        with path.open("a") as file:
            file.write("p1,1,Ulm,True,2020-01-01,7\n")
        return learned

    monkeypatch.setattr(table_module, "_learn", meanwhile)
    assert "bank.csv was changed while it was read" in refused(path, slots)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.drop(columns="city"), "the column 'city', which was there when training began, is gone"),
        (lambda frame: frame.assign(new=1), "the column 'new' was not there when training began; take it out"),
        (lambda frame: frame.assign(income="x"), "'income' held numbers when training began and now holds text"),
        (lambda frame: frame.assign(since=5), "'since' held times when training began and now holds numbers"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_changed_since_the_checkpoint_are_named(
    suffix: str, change: Any, says: str, slots: Path, tmp_path: Path
) -> None:
    path = write(bank(), tmp_path / f"bank{suffix}")
    schema = opened(path, slots).schema
    message = refused(write(change(bank()), path), slots, schema=schema)
    assert says in message and f"bank{suffix}" in message and "or start a new run" in message


def test_true_and_false_may_come_as_one_and_zero(slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    table = opened(path, slots)
    before = table.take(np.arange(ROWS))
    write(bank().assign(member=lambda frame: frame["member"].astype(int)), path)
    np.testing.assert_array_equal(opened(path, slots, schema=table.schema).take(np.arange(ROWS)), before)


def test_another_use_of_the_values_is_refused(slots: Path, tmp_path: Path) -> None:
    path = write(bank()[["id"]].assign(a=np.linspace(0, 1, ROWS)), tmp_path / "a.csv")
    schema = opened(path, slots).schema
    assert "values = 'unit' was not so when training began" in refused(path, slots, values="unit", schema=schema)


def test_a_damaged_schema_is_refused(slots: Path, tmp_path: Path) -> None:
    path = write(bank(), tmp_path / "bank.csv")
    good = opened(path, slots).schema
    assert "not a saved schema" in refused(path, slots, schema={})
    assert "not a saved column encoder" in refused(path, slots, schema={**good, "encoder": {}})


@given(st.dictionaries(st.text(max_size=3), st.sampled_from(["number", "time", "category"]), max_size=4))
def test_a_schema_matches_itself_in_any_order(kinds: dict[str, str]) -> None:
    saved = {"values": "standardise", "source": [{"name": name, "kind": kind} for name, kind in kinds.items()]}
    check_schema(saved, {**saved, "source": saved["source"][::-1]})
