"""Practice data: who gets which rows and columns of one table, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.data import load_tables
from dvfl.data.tables import practice
from dvfl.data.tables.practice import Shares
from dvfl.errors import UserError

ROWS = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table whose every value tells the row's number."""
    i = np.arange(ROWS)
    frame = pd.DataFrame({"who": [f"P{number:03d}" for number in i], "a": i, "b": i * 1.5, "paid": i % 2, "c": -i})
    frame.to_csv(tmp_path / "whole.csv", index=False)
    return tmp_path / "whole.csv"


@settings(deadline=None)
@given(
    rows=st.integers(2, 60),
    guests=st.integers(1, 5),
    overlap=st.floats(0.05, 1),
    seed=st.integers(0, 5),
    data=st.data(),
)
def test_common_rows_are_everybodys_and_every_other_one_is_at_one_guest(
    rows: int, guests: int, overlap: float, seed: int, data: st.DataObject
) -> None:
    common = round(rows * overlap)
    if common == 0:
        return
    count = data.draw(st.integers(1, common))
    taken, labelled = practice.hand_out(rows, guests, Shares(overlap, count, seed))
    held = np.bincount(np.concatenate(taken), minlength=rows)
    assert (held == guests).sum() == (rows if guests == 1 else common)
    assert ((held == guests) | (held == 1)).all()
    assert len(set(labelled.tolist())) == count and (held[labelled] == guests).all()
    assert max(map(len, taken)) - min(map(len, taken)) <= 1


def test_files_have_ids_shuffled_rows_and_values_of_their_row(path: Path) -> None:
    whole = practice.from_table(path, "who", "paid", 2)
    files = practice.split(whole, 0.2, Shares(0.5, 30))
    assert list(files) == ["guest-1", "guest-2", "labels", "test_guest-1", "test_guest-2", "test_labels"]
    assert list(files["guest-1"]) == ["who", "a", "b"] and list(files["guest-2"]) == ["who", "c"]
    assert [len(frame) for frame in files.values()] == [60, 60, 30, 20, 20, 20]
    number = files["guest-1"]["who"].str[1:].astype(int)
    assert (number == files["guest-1"]["a"]).all() and not number.is_monotonic_increasing
    labels = files["labels"]
    assert (labels["who"].str[1:].astype(int) % 2 == labels["paid"]).all()
    trained = set(files["guest-1"]["who"]) | set(files["guest-2"]["who"])
    assert set(files["test_guest-1"]["who"]) == set(files["test_labels"]["who"])
    assert not trained & set(files["test_labels"]["who"])


def test_what_is_written_can_be_trained_on(path: Path, tmp_path: Path) -> None:
    whole = practice.from_table(path, "who", "paid", 2)
    practice.write(practice.split(whole, 0.0, Shares(0.4, 20)), tmp_path / "out" / "made")
    folder = tmp_path / "out" / "made"
    assert sorted(file.name for file in folder.iterdir()) == ["guest-1.parquet", "guest-2.parquet", "labels.parquet"]
    loaded = load_tables([folder / "guest-1.parquet", folder / "guest-2.parquet"], folder / "labels.parquet", "who")
    assert loaded.overlap.labelled_common == 20 and loaded.overlap.common == 40
    assert loaded.data.rows == 70 - 4


def test_a_data_set_has_labels_ids_and_test_rows_of_its_own() -> None:
    whole, tests = practice.from_dataset("wine", None, None, 0)
    files = practice.split(whole, tests, Shares(0.5, None))
    assert {name for name in files if name.startswith("test_")} == {f"test_guest-{i}" for i in (1, 2, 3)} | {
        "test_labels"
    }
    assert files["labels"]["label"].nunique() == 3 and list(files["labels"]) == ["id", "label"]
    assert not set(files["test_labels"]["id"]) & set(files["guest-1"]["id"])
    again, _ = practice.from_dataset("wine", None, None, 0)
    assert practice.split(again, tests, Shares(0.5, None))["guest-2"].equals(files["guest-2"])


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        (
            Shares(0.3, 31),
            r"--labelled 31: from 1 to 30 is right, the rows that all guests have \(--overlap 0.3 of 100\)",
        ),
        (Shares(0.3, 0), "--labelled 0"),
        (Shares(1.1, 10), "--overlap 1.1: a share from 0 to 1"),
        (Shares(-0.1, 10), "--overlap -0.1"),
        (Shares(0.0, None), "--labelled 0"),
    ],
)
def test_impossible_shares_are_refused(path: Path, shares: Shares, says: str) -> None:
    with pytest.raises(UserError, match=says):
        practice.split(practice.from_table(path, "who", "paid", 2), 0.0, shares)


def test_more_guests_than_columns_and_other_nonsense_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"whole.csv: 4 guests cannot share 3 columns besides 'who' and 'paid'"):
        practice.from_table(path, "who", "paid", 4)
    with pytest.raises(UserError, match="has no column 'payed'; did you mean 'paid'"):
        practice.from_table(path, "who", "payed", 2)
    whole = practice.from_table(path, "who", "paid", 2)
    with pytest.raises(UserError, match=r"--test 1\.0: a share from 0 to below 1"):
        practice.split(whole, 1.0, Shares(0.5, None))
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    with pytest.raises(UserError, match="is there already; a new folder is right"):
        practice.write(practice.split(whole, 0.0, Shares(0.5, None)), tmp_path / "used")
    assert [file.name for file in (tmp_path / "used").iterdir()] == ["file"]
