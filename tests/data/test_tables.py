import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dvfl.data import ColumnEncoder, load_tables
from dvfl.data.split.vertical import ABSENT, Split
from dvfl.data.tables.overlap import Overlap
from dvfl.errors import UserError

ROWS = 50


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=frame.index.name is not None)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def bank(rows: int = ROWS) -> pd.DataFrame:
    i = np.arange(rows)
    return pd.DataFrame({"id": i, "income": i * 10.5, "city": np.where(i % 3, "Ulm", "Bonn")})


def shop(rows: int = ROWS) -> pd.DataFrame:
    i = np.arange(rows)
    return pd.DataFrame({"id": i, "basket": (i * 7) % 11, "since": pd.date_range("2020-01-01", periods=rows)})


def owner(rows: int = ROWS) -> pd.DataFrame:
    return pd.DataFrame({"id": np.arange(rows), "label": np.where(np.arange(rows) % 2, "yes", "no")})


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[Path], Path]:
    tables = [write(bank(), tmp_path / "bank.csv"), write(shop(), tmp_path / "shop.parquet")]
    return tables, write(owner(), tmp_path / "labels.csv")


def refused(*args: object, **kwargs: object) -> str:
    """The one line with which `load_tables` refuses."""
    with pytest.raises(UserError) as caught:
        load_tables(*args, **kwargs)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_each_table_becomes_a_guest_with_encoded_columns(files):
    loaded = load_tables(*files, "id")
    data = loaded.data
    assert [guest.name for guest in data.guests] == ["bank", "shop"]
    assert loaded.encoders[0].names == ("income", "city = Bonn", "city = Ulm")
    assert loaded.encoders[1].names == ("basket", "since")
    assert data.guests[0].train.shape == (40, 3) and data.guests[1].test.shape == (10, 2)
    assert data.classes == ("no", "yes") and data.sizes == "table" and data.split == Split("random")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_every_format_gives_the_same_numbers(suffix, files, tmp_path):
    expected = load_tables(*files, "id").data
    tables = [write(bank(), tmp_path / f"a{suffix}"), write(shop(), tmp_path / f"b{suffix}")]
    data = load_tables(tables, write(owner(), tmp_path / f"y{suffix}"), "id").data
    assert np.array_equal(data.y_train, expected.y_train)
    for guest, like in zip(data.guests, expected.guests, strict=True):
        assert np.allclose(guest.train, like.train, atol=1e-6)


def test_rows_are_joined_by_id_whatever_their_order(files, tmp_path):
    straight = load_tables(*files, "id")
    shuffled = [
        write(bank().sample(frac=1, random_state=1), tmp_path / "bank2.csv"),
        write(shop().sample(frac=1, random_state=2), tmp_path / "shop2.csv"),
    ]
    mixed = load_tables(shuffled, write(owner().sample(frac=1, random_state=3), tmp_path / "labels2.csv"), "id")
    assert np.array_equal(mixed.ids_test, straight.ids_test)
    assert np.array_equal(mixed.data.y_train, straight.data.y_train)
    for a, b in zip(mixed.data.guests, straight.data.guests, strict=True):
        assert np.allclose(a.train, b.train, atol=1e-6) and np.allclose(a.test, b.test, atol=1e-6)


def test_labels_belong_to_the_ids(files):
    loaded = load_tables(*files, "id")
    assert np.array_equal(loaded.data.y_train, loaded.ids_train % 2)
    assert np.array_equal(loaded.data.y_test, loaded.ids_test % 2)
    assert sorted([*loaded.ids_train, *loaded.ids_test]) == list(range(ROWS))


def test_rows_outside_the_intersection_count_and_the_note_says_how_many(tmp_path):
    tables = [write(bank().iloc[:45], tmp_path / "bank.csv"), write(shop().iloc[5:], tmp_path / "shop.csv")]
    loaded = load_tables(tables, write(owner(60).iloc[10:], tmp_path / "labels.csv"), "id")
    data, overlap = loaded.data, loaded.overlap
    assert overlap == Overlap(rows=(45, 45), common=40, labels=50, labelled=40, labelled_common=35)
    assert data.note == (
        "rows: bank.csv 45, shop.csv 45, labels.csv 50; in every table: 40; labelled: 40, of which in every table: 35"
        "; labels without a row: 10"
    )
    assert len(data.y_train) == 32 and len(data.y_test) == 8
    assert data.labelled is not None
    for guest, where, first, last in zip(data.guests, data.labelled, (0, 5), (45, 50), strict=True):
        has = (loaded.ids_train >= first) & (loaded.ids_train < last)
        assert ((where != ABSENT) == has).all()
        tested = (loaded.ids_test >= first) & (loaded.ids_test < last)
        assert len(guest.train) == 45 - tested.sum()  # its other rows, the unlabelled ones as well
    income = loaded.data.guests[0].train[data.labelled[0][data.labelled[0] != ABSENT], 0]
    assert np.corrcoef(income, loaded.ids_train[data.labelled[0] != ABSENT])[0, 1] > 0.999


def test_test_rows_that_a_guest_lacks_are_marked(tmp_path):
    tables = [write(bank(), tmp_path / "bank.csv"), write(shop().iloc[25:], tmp_path / "shop.csv")]
    loaded = load_tables(tables, write(owner(), tmp_path / "labels.csv"), "id")
    assert loaded.data.tested is not None
    assert loaded.data.tested[0].all() and (loaded.data.tested[1] == (loaded.ids_test >= 25)).all()
    assert (loaded.data.guests[1].test[loaded.ids_test < 25] == 0).all()
    assert not set(loaded.ids_train) & set(loaded.ids_test)


def test_what_all_tables_have_comes_first_in_one_order(tmp_path):
    tables = [write(bank().iloc[:45], tmp_path / "bank.csv"), write(bank().iloc[5:], tmp_path / "again.csv")]
    data = load_tables(tables, write(owner().iloc[:30], tmp_path / "labels.csv"), "id").data
    common = 40 - int((data.tested.all(0)).sum())
    one, other = (guest.train[:common, 0] for guest in data.guests)
    assert np.corrcoef(one, other)[0, 1] > 0.999


def test_columns_are_standardised_by_training_rows_only(files):
    loaded = load_tables(*files, "id")
    income = loaded.data.guests[0].train[:, 0]
    assert abs(income.mean()) < 1e-6 and income.std() == pytest.approx(1, abs=1e-5)
    assert loaded.encoders[0] == ColumnEncoder.fit(bank().set_index("id").loc[loaded.ids_train])


def test_tables_of_one_name_are_told_apart(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    tables = [write(bank(), tmp_path / "x" / "table.csv"), write(shop(), tmp_path / "y" / "table.csv")]
    data = load_tables(tables, write(owner(), tmp_path / "labels.csv"), "id").data
    assert [guest.name for guest in data.guests] == ["guest-1", "guest-2"]


def test_leading_zeros_of_ids_are_kept(tmp_path):
    text = [f"{i:03}" for i in range(ROWS)]
    tables = [write(bank().assign(id=text), tmp_path / "bank.csv")]
    loaded = load_tables(tables, write(owner().assign(id=text), tmp_path / "labels.parquet"), "id")
    assert sorted([*loaded.ids_train, *loaded.ids_test]) == text


def test_ids_in_csv_join_with_text_in_parquet(tmp_path):
    tables = [write(bank(), tmp_path / "bank.csv")]
    labels = write(owner().assign(id=[str(i) for i in range(ROWS)]), tmp_path / "labels.parquet")
    assert load_tables(tables, labels, "id").data.rows == 40


def test_ids_larger_than_64_bits_join(tmp_path):
    ids = [str(10**25 + i) for i in range(ROWS)]
    tables = [write(bank().assign(id=ids), tmp_path / "bank.csv")]
    assert load_tables(tables, write(owner().assign(id=ids), tmp_path / "labels.csv"), "id").data.rows == 40


def test_ids_saved_as_a_parquet_index_are_found(tmp_path):
    tables = [write(bank().set_index("id"), tmp_path / "bank.parquet")]
    assert load_tables(tables, write(owner(), tmp_path / "labels.csv"), "id").data.rows == 40


def test_a_floating_label_of_many_values_is_a_regression(files, tmp_path):
    price = write(owner().assign(label=np.linspace(0, 1, ROWS)), tmp_path / "price.csv")
    loaded = load_tables(files[0], price, "id")
    assert loaded.data.classes is None and loaded.data.y_train.dtype == np.float32
    assert np.allclose(loaded.data.y_test, loaded.ids_test / (ROWS - 1))


def test_numbers_of_few_values_are_classes_in_numerical_order(files, tmp_path):
    for label in (np.arange(ROWS) % 12, (np.arange(ROWS) % 12).astype(float)):
        grades = write(owner().assign(label=label), tmp_path / "grades.parquet")
        assert load_tables(files[0], grades, "id").data.classes == tuple(str(i) for i in range(12))


def test_the_task_can_be_said(files, tmp_path):
    whole = write(owner().assign(label=np.arange(ROWS)), tmp_path / "whole.csv")
    assert load_tables(files[0], whole, "id", task="regress").data.classes is None
    few = write(owner().assign(label=np.arange(ROWS) % 5 + 0.5), tmp_path / "few.csv")
    assert load_tables(files[0], few, "id", task="classify").data.classes == ("0.5", "1.5", "2.5", "3.5", "4.5")


def test_nearly_as_many_classes_as_rows_are_refused_unless_said(files, tmp_path):
    whole = write(owner().assign(label=np.arange(ROWS)), tmp_path / "whole.csv")
    assert "50 different values in 50 rows" in refused(files[0], whole, "id")


def test_a_regression_on_text_is_refused(files):
    assert "the label 'label' is not a number" in refused(*files, "id", task="regress")


@pytest.mark.parametrize("value", [np.inf, 1e300])
def test_a_target_that_float32_cannot_hold_is_refused(value, files, tmp_path):
    price = owner().assign(label=np.linspace(0, 1, ROWS))
    price.loc[3, "label"] = value
    assert "in 1 rows" in refused(files[0], write(price, tmp_path / "price.csv"), "id")


def test_a_class_of_one_row_does_not_stop_the_split(files, tmp_path):
    rare = owner()
    rare.loc[0, "label"] = "rare"
    data = load_tables(files[0], write(rare, tmp_path / "rare.csv"), "id").data
    assert data.classes == ("no", "rare", "yes")


def test_the_label_column_can_be_named(files, tmp_path):
    two = write(owner().assign(age=np.arange(ROWS) % 3), tmp_path / "two.csv")
    assert load_tables(files[0], two, "id", label_column="age").data.classes == ("0", "1", "2")
    assert "several columns (label, age); say which" in refused(files[0], two, "id")
    assert "no column 'lable'; did you mean 'label'?" in refused(files[0], two, "id", label_column="lable")


def test_dates_in_csv_are_times_and_not_levels(tmp_path):
    dates = bank().assign(day=[f"2024-{1 + i % 12:02}-01" for i in range(ROWS)])
    dates.loc[3, "day"] = None
    loaded = load_tables([write(dates, tmp_path / "a.csv")], write(owner(), tmp_path / "y.csv"), "id")
    assert [c.kind for c in loaded.encoders[0].columns] == ["number", "category", "time"]


def test_text_that_only_looks_like_dates_stays_text(tmp_path):
    codes = bank().assign(code=["2024-99-99", "2024-01-01"] * (ROWS // 2))
    loaded = load_tables([write(codes, tmp_path / "a.csv")], write(owner(), tmp_path / "y.csv"), "id")
    assert loaded.encoders[0].columns[-1].kind == "category"


def test_missing_values_are_imputed_or_forbidden(tmp_path):
    holes = bank()
    holes.loc[[1, 2, 3, 4, 5, 6], "income"] = None
    tables, labels = [write(holes, tmp_path / "bank.csv")], write(owner(), tmp_path / "labels.csv")
    assert "income is missing" in load_tables(tables, labels, "id").encoders[0].names
    message = refused(tables, labels, "id", missing="forbid")
    assert "bank.csv: 6 of 50 values are missing in the column 'income'" in message


def test_infinite_values_are_named_by_the_files_row(tmp_path):
    endless = bank().sample(frac=1, random_state=0).reset_index(drop=True)
    endless.loc[6, "income"] = np.inf
    message = refused([write(endless, tmp_path / "bank.csv")], write(owner(), tmp_path / "labels.csv"), "id")
    assert "bank.csv: the column 'income' holds infinite values: 1, the first in row 7" in message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gone.csv", None, "gone.csv is not there"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("blank.csv", b"\n\n", "blank.csv is empty"),
        ("header.csv", b"id,a\n", "header.csv has a header but no rows"),
        ("ragged.csv", b"id,a\n1,2\n3,4,5\n", "ragged.csv cannot be read as .csv"),
        ("wide.csv", b"id,a\n1,2,3\n3,4,5\n", "more fields than its header"),
        ("latin.csv", b"id,a\n1,\xe9\n2,b\n", "latin.csv cannot be read as .csv"),
        ("binary.csv", b"id,a\n1,\x00\x01\n", "zero bytes"),
        ("cut.csv.gz", gzip.compress(b"id,a\n1,2\n", mtime=0)[:-9], "cut.csv.gz cannot be read as .csv.gz"),
        ("plain.csv.gz", b"id,a\n1,2\n", "plain.csv.gz cannot be read as .csv.gz"),
        ("not.parquet", b"PAR1 nothing", "not.parquet cannot be read as .parquet"),
        ("sheet.xlsx", b"x", "'.xlsx' is not a kind of table we read; use .csv, .csv.gz, .tsv, .parquet"),
    ],
)
def test_a_file_that_is_no_table_is_named(name, content, says, files, tmp_path):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert says in refused([path], files[1], "id")


def test_a_folder_is_not_a_table(files, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in refused([tmp_path / "folder.csv"], files[1], "id")


def test_a_table_without_the_id_says_what_it_has(files, tmp_path):
    many = pd.DataFrame({f"c{i}": [1, 2] for i in range(10)} | {"Id": [1, 2]})
    message = refused([write(many, tmp_path / "many.csv")], files[1], "id")
    assert "no column 'id' to join on; it has c0, c1, c2, c3, c4, c5, c6, c7 and 3 more; did you mean 'Id'?" in message


def test_repeated_ids_are_counted_and_not_printed(files, tmp_path):
    twice = pd.concat([bank().assign(id=lambda f: f["id"] + 77000)] * 2).iloc[: ROWS + 3]
    message = refused([write(twice, tmp_path / "twice.csv")], files[1], "id")
    assert "twice.csv: 3 of 53 rows repeat" in message and "7700" not in message


def test_missing_ids_are_counted(files, tmp_path):
    lost = bank().astype({"id": "Int64"})
    lost.loc[[4, 5], "id"] = None
    for name in ("lost.csv", "lost.parquet"):
        assert "2 of 50 rows have no 'id'" in refused([write(lost, tmp_path / name)], files[1], "id")


def test_nested_ids_and_labels_are_refused(files, tmp_path):
    nested = [[i] for i in range(ROWS)]
    assert "ids in 'id' are lists" in refused([write(bank().assign(id=nested), tmp_path / "a.parquet")], files[1], "id")
    labels = write(owner().assign(label=nested), tmp_path / "y.parquet")
    assert "labels in 'label' are lists" in refused(files[0], labels, "id")


def test_ids_that_never_meet_are_reported_with_the_sizes(files, tmp_path):
    far = write(bank().assign(id=np.arange(ROWS) + 1000), tmp_path / "far.csv")
    message = refused([far], files[1], "id")
    assert message.startswith("no label is of an id in ") and "far.csv 50" in message and "type" not in message


def test_ids_of_different_types_are_reported_as_such(tmp_path):
    numbers = write(bank(), tmp_path / "bank.parquet")
    text = write(owner().assign(id=[f"{i}" for i in range(ROWS)]), tmp_path / "labels.parquet")
    message = refused([numbers], text, "id")
    assert "the ids differ in type (whole numbers in bank.parquet, text in labels.parquet)" in message


def test_missing_labels_are_counted(files, tmp_path):
    unknown = owner()
    unknown.loc[:3, "label"] = None
    assert "4 of 50 labels are missing" in refused(files[0], write(unknown, tmp_path / "unknown.csv"), "id")


def test_one_class_is_nothing_to_learn(files, tmp_path):
    same = write(owner().assign(label="yes"), tmp_path / "same.csv")
    assert "all 50 joined rows have the same label" in refused(files[0], same, "id")


def test_labels_alone_with_the_id_are_refused(files, tmp_path):
    assert "it needs the label" in refused(files[0], write(owner()[["id"]], tmp_path / "bare.csv"), "id")


def test_a_guest_with_only_ids_is_refused(files, tmp_path):
    assert "bare.csv has no column besides 'id'" in refused(
        [write(bank()[["id"]], tmp_path / "bare.csv")], files[1], "id"
    )


def test_a_guest_whose_columns_never_vary_is_named(files, tmp_path):
    flat = write(bank()[["id"]].assign(a=1), tmp_path / "flat.csv")
    assert "flat.csv: no column tells rows apart" in refused([flat], files[1], "id")


def test_the_labels_cannot_also_be_a_guests_table(files):
    assert "would train on the labels" in refused([*files[0], files[1]], files[1], "id")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1])
def test_a_test_fraction_outside_the_unit_interval_is_refused(fraction, files):
    assert "must lie between 0 and 1" in refused(*files, "id", test_fraction=fraction)


def test_the_test_fraction_is_kept(files):
    assert len(load_tables(*files, "id", test_fraction=0.5).data.y_test) == 25
