"""Tables read block by block: types that hold for the whole file, and files that cannot be read."""

import datetime
import decimal
import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.data import ColumnEncoder
from dvfl.data.tables import csv_blocks
from dvfl.data.tables.blocks import open_blocks
from dvfl.data.tables.kinds import kind_of
from dvfl.data.tables.reading import read_table
from dvfl.errors import UserError


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK", 256)
    monkeypatch.setattr("dvfl.data.tables.blocks.VALUES", 1)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def whole(path: Path) -> pd.DataFrame:
    frames = list(open_blocks(path, "id")[0].blocks())
    return pd.concat(frames, ignore_index=True)


def kinds(path: Path) -> dict[str, str]:
    return dict(open_blocks(path, "id")[0].kinds)


# CSV.


@pytest.mark.parametrize("last", ["text", "2024-01-01", "true", "1,5", "NAN", "0x10", " "])
def test_what_is_text_in_the_last_block_is_text_in_all(last: str, small_blocks: None, tmp_path: Path) -> None:
    values = [*(str(i % 7) for i in range(500)), f'"{last}"']
    path = write(tmp_path / "a.csv", "id,a\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    assert kinds(path) == {"a": "category"}
    frame = whole(path)
    assert frame["a"].tolist() == [*values[:-1], last]


def test_a_column_that_is_missing_at_first_has_the_kind_of_what_follows(small_blocks: None, tmp_path: Path) -> None:
    rows = [",,,"] * 300 + ["1.5,True,2024-05-06,x"]
    path = write(tmp_path / "a.csv", "id,n,b,t,c\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows)))
    assert kinds(path) == {"n": "number", "b": "boolean", "t": "time", "c": "category"}
    frame = whole(path)
    assert frame.isna().sum().tolist() == [300] * 4
    assert ColumnEncoder.fit(frame.iloc[-2:]).width == 4


def test_every_spelling_of_a_missing_value_is_the_one_of_whole_tables(tmp_path: Path) -> None:
    spelled = [*csv_blocks.MISSING[1:], "NAN", "none", "na", "-", "?"]
    path = write(tmp_path / "a.csv", "id,a,n\n" + "".join(f"{i},{text},1\n" for i, text in enumerate(spelled)))
    expected = read_table(path, "id").columns["a"].isna()
    assert whole(path)["a"].isna().tolist() == expected.tolist()
    assert expected.sum() == len(csv_blocks.MISSING) - 1


def test_numbers_may_have_signs_blanks_and_exponents(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,a\n1,+1.5\n2, -2\n3,1e3 \n4,\n")
    assert whole(path)["a"].tolist()[:3] == [1.5, -2.0, 1000.0]


def test_quoted_values_may_hold_separators_quotes_and_line_breaks(small_blocks: None, tmp_path: Path) -> None:
    text = 'a "quoted", long\nvalue'
    row = '"' + text.replace('"', '""') + '"'
    path = write(tmp_path / "a.csv", "id,a\n" + "".join(f"{i},{row}\n" for i in range(50)))
    assert whole(path)["a"].tolist() == [text] * 50


def test_a_value_that_ends_in_a_line_break_is_not_taken_for_an_open_one(tmp_path: Path) -> None:
    assert whole(write(tmp_path / "a.csv", 'id,a\n1,"x\n"'))["a"].tolist() == ["x\n"]


def test_a_byte_order_mark_blank_lines_and_a_column_without_a_name_are_as_in_whole_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf,id,a\r\n0,x,1\r\n\r\n1,y,2\r\n")
    assert list(kinds(path)) == list(read_table(path, "id").columns) == ["Unnamed: 0", "a"]


def test_a_kind_known_from_earlier_rows_is_kept_where_the_text_allows_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,code,empty,count\n1,01,,1\n2,02,,2\n")
    file, _ = open_blocks(path, "id", {"code": "category", "empty": "time", "count": "time"})
    assert file.kinds == {"code": "category", "empty": "time", "count": "number"}
    assert next(file.blocks())["code"].tolist() == ["01", "02"]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv"])
def test_every_format_of_text_is_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    pd.DataFrame({"id": ["a", "b"], "x": [1.5, None]}).to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    file, ids = open_blocks(path, "id")
    assert ids.to_pylist() == ["a", "b"] and file.kinds == {"x": "number"}


CELLS = st.sampled_from(
    ["", "NA", "0", "1", "-2.5", "1e3", "True", "false", "2024-01-01", "2024-01-01T10:00", "x", "é"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=2, max_size=60))
def test_kinds_and_encodings_are_those_of_the_table_read_whole(rows: list[tuple[str, ...]]) -> None:
    text = "id,n,a,b,c\n" + "".join(f"{i},{i},{','.join(row)}\n" for i, row in enumerate(rows))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_blocks, "BLOCK", 128)
        path = write(Path(folder) / "a.csv", text)
        expected = read_table(path, "id").columns
        file, ids = open_blocks(path, "id")
        frames = list(file.blocks())
    assert ids.to_pylist() == [str(i) for i in range(len(rows))]
    encoder = ColumnEncoder.fit(expected)
    assert file.kinds == {name: kind_of(expected[name], name) for name in expected}
    found = np.concatenate([encoder.transform(frame) for frame in frames])
    np.testing.assert_array_equal(found, encoder.transform(expected))


# Parquet.


def test_parquet_has_the_kinds_that_pandas_gives_its_types(small_blocks: None, tmp_path: Path) -> None:
    day = datetime.date(2024, 1, 2)
    columns = {
        "i": pa.array([1, None]),
        "f": pa.array([1.5, None], pa.float32()),
        "d": pa.array([decimal.Decimal("1.5"), None]),
        "b": pa.array([True, None]),
        "day": pa.array([day, None]),
        "at": pa.array([datetime.datetime(2024, 1, 1), None], pa.timestamp("us", "Europe/Berlin")),
        "for": pa.array([datetime.timedelta(1), None]),
        "s": pa.array(["x", None]),
        "e": pa.array(["x", None]).dictionary_encode(),
        "bytes": pa.array([b"x", None]),
        "clock": pa.array([datetime.time(10), None]),
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], **columns}), path)
    file, _ = open_blocks(path, "id")
    expected = read_table(path, "id").columns
    assert file.kinds == {name: kind_of(expected[name], name) for name in columns}
    encoder = ColumnEncoder.fit(expected)
    found = np.concatenate([encoder.transform(frame) for frame in file.blocks()])
    np.testing.assert_array_equal(found, encoder.transform(expected))


def test_a_column_of_nothing_has_the_kind_it_is_known_to_have(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1], "a": pa.nulls(1), "b": pa.nulls(1)}), path)
    assert open_blocks(path, "id", {"a": "time"})[0].kinds == {"a": "time", "b": "number"}


def test_ids_saved_as_row_labels_are_found_and_labels_without_a_name_are_none_of_the_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["x", "y"], "a": [1, 2]})
    for number, labelled in enumerate([frame.set_index("id"), frame.set_index(np.array([7, 3]))]):
        path = tmp_path / f"{number}.parquet"
        labelled.to_parquet(path)
        file, ids = open_blocks(path, "id")
        assert ids.to_pylist() == ["x", "y"]
        assert next(file.blocks()).to_dict("list") == {"a": [1, 2]}


def test_nested_columns_are_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "a": [[1, 2]]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet: the column 'a' holds lists"):
        open_blocks(tmp_path / "a.parquet", "id")


# Files that cannot be read.


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gone.csv", None, "gone.csv is not there"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("blank.csv", b"\n\n", "it is empty"),
        ("header.csv", b"id,a\n", "header.csv has a header but no rows"),
        ("long.csv", b"id,a\n1,2\n3,4,5\n", "row 3, the header counted, has 3 fields; 2 is right"),
        ("short.csv", b"id,a,b\n1,2,3\n3,4\n", "row 3, the header counted, has 2 fields; 3 is right"),
        ("latin.csv", b"id,a\n1,\xe9\n2,b\n", "latin.csv cannot be read as .csv: it is not text in UTF-8"),
        ("binary.csv", b"id,a\n1,\x00\x01\n", "zero bytes"),
        ("open.csv", b'id,a\n1,"x\n2,y\n', "a quoted value near its end is never closed"),
        ("huge.csv", b"id,a\n1," + b"x" * 5_000_000, "a row is longer than 4 MiB"),
        ("cut.csv.gz", gzip.compress(b"id,a\n1,2\n", mtime=0)[:-9], "cut.csv.gz cannot be read as .csv.gz"),
        ("plain.csv.gz", b"id,a\n1,2\n", "plain.csv.gz cannot be read as .csv.gz"),
        ("not.parquet", b"PAR1 nothing", "not.parquet cannot be read as .parquet"),
        ("sheet.xlsx", b"x", "'.xlsx' is not a kind of table we read"),
        ("twice.csv", b"id,a,a\n1,2,3\n", "twice.csv: the column name 'a' stands for more than one"),
        ("bare.csv", b"id\n1\n", "bare.csv has no column besides 'id'"),
        ("other.csv", b"Id,a\n1,2\n", "no column 'id' to join on; it has Id, a; did you mean 'Id'?"),
    ],
)
def test_a_file_that_is_no_table_is_named(name: str, content: bytes | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        open_blocks(tmp_path / name, "id")
    assert says in str(caught.value) and str(tmp_path / name) in str(caught.value) and "\n" not in str(caught.value)


def test_an_error_does_not_show_the_row_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        open_blocks(write(tmp_path / "a.csv", "id,a\n1,2\nsecret,4,5\n"), "id")
    assert "secret" not in str(caught.value)


def test_a_folder_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        open_blocks(tmp_path / "folder.parquet", "id")
