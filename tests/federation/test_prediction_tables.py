"""Lists of ids from files, and predictions as a table."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dvfl.errors import UserError
from dvfl.federation.prediction.prediction_tables import check_out, framed, listed, read_list, write_frame
from dvfl.federation.protocol.predictions import GuestPart, Prediction
from dvfl.show.predict_table import summary

GUESTS = {"clinic": GuestPart("fresh", 0.0), "lab": GuestPart("cached", 12.5)}
ONE = Prediction(
    "a", True, "ill", None, {"ill": 0.7, "well": 0.3}, 0.7, True, GUESTS, {"host-1": True, "host-2": False}
)
SILENT = Prediction("b", True, guests=dict.fromkeys(GUESTS, GuestPart("absent")), hosts={"host-1": False})
UNKNOWN = Prediction("c", False)


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("ids.csv", "id,more\n007,x\nb c,y\n007,z\n", [2, 3, 4]),
        ("ids.tsv", "more\tid\nx\t007\ny\tb c\nz\t007\n", [2, 3, 4]),
        ("ids.txt", "007\n\n  b c \n007\n", [1, 3, 4]),
    ],
)
def test_ids_are_read_as_they_are_written_with_their_lines(
    tmp_path: Path, name: str, content: str, lines: list[int]
) -> None:
    (tmp_path / name).write_text(content)
    found = read_list(tmp_path / name, "id")
    assert (found.ids, found.lines) == (["007", "b c", "007"], lines)


@pytest.mark.parametrize("ids", [[3, 1, 3], [3.0, 1.0, 3.0], ["3", "1", "3"]], ids=["whole", "floating", "text"])
def test_ids_of_parquet_may_be_numbers_or_text(tmp_path: Path, ids: list[object]) -> None:
    pd.DataFrame({"patient": ids}).to_parquet(tmp_path / "ids.parquet")
    found = read_list(tmp_path / "ids.parquet", "patient")
    assert (found.ids, found.lines) == (["3", "1", "3"], [1, 2, 3])


@pytest.mark.parametrize(
    "ids", [["3", "1"], (3, 1), np.array([3, 1]), pd.Series([3.0, 1.0]), pd.Series(["3", "1"], dtype="category")]
)
def test_ids_of_python_are_listed_as_files_have_them(ids: Any) -> None:
    assert listed(ids) == ["3", "1"]
    assert listed(ids[:0]) == []


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("31", "a list of ids"),
        (b"31", "a list of ids"),
        (pd.DataFrame({"id": [3, 1]}), "one column of a table"),
        (["3", None], "1 of 2 are missing"),
        ([3, np.nan], "1 of 2 are missing"),
        ([3, "1"], "mixed types"),
        ([3.5, 1.0], "fractions"),
        ([["3"]], "of the type list"),
    ],
)
def test_what_is_no_list_of_ids_is_refused(ids: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        listed(ids)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("ids.csv", "number\n1\n", "has no column 'id'"),
        ("ids.csv", "", "is empty"),
        ("ids.csv", "id\n", "no rows"),
        ("ids.txt", "\n \n", "is empty"),
        ("ids.txt", None, "cannot be read"),
        ("ids.csv", None, "not there"),
        ("ids.json", "{}", "no kind of list"),
    ],
)
def test_lists_that_cannot_be_used_are_refused(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=said):
        read_list(tmp_path / name, "id")


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_predictions_are_written_with_what_they_rest_on(tmp_path: Path, name: str) -> None:
    frame = framed([ONE, SILENT, UNKNOWN], list(GUESTS), ("ill", "well"))
    write_frame(frame, tmp_path / name)
    read = pd.read_parquet(tmp_path / name) if name.endswith("parquet") else pd.read_csv(tmp_path / name)
    wanted = ["id", "class", "p_ill", "p_well", "confidence", "degraded", "clinic", "clinic_age_s", "lab", "lab_age_s"]
    assert list(read.columns) == wanted
    assert read.iloc[0].tolist() == ["a", "ill", 0.7, 0.3, 0.7, True, "fresh", 0.0, "cached", 12.5]
    assert read["class"].isna().tolist() == [False, True, True]
    assert read["lab"].tolist() == ["cached", "absent", "absent"] and read["degraded"].all()


def test_a_regression_has_values_in_place_of_classes() -> None:
    frame = framed([Prediction("a", True, value=2.5, guests=GUESTS)], list(GUESTS), None)
    assert list(frame.columns)[:4] == ["id", "value", "confidence", "degraded"]
    assert frame["value"].tolist() == [2.5]


def test_a_file_that_could_not_be_written_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    check_out(tmp_path / "a.csv", tmp_path / "ids.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, said in (
        ("a.json", r"\.parquet or \.csv"),
        ("no/a.csv", "is not there"),
        ("folder.csv", "is a folder"),
        ("folder.csv/../ids.csv", "is the list of the ids"),
    ):
        with pytest.raises(UserError, match=said):
            check_out(tmp_path / name, tmp_path / "ids.csv")


def test_the_summary_tells_a_corrupt_guest_from_an_absent_one() -> None:
    one = Prediction("a", True, "ill", guests={"lab": GuestPart("absent", suspected=True)}, hosts={"host-1": True})
    assert summary([one], [2])[1] == "lab        left out, looked corrupt, in 1 rows"


def test_the_summary_names_who_was_missing_and_where_unknown_ids_stand_but_no_id() -> None:
    said = summary([ONE, SILENT, *[UNKNOWN] * 4], [2, 3, 5, 6, 7, 9])
    assert said[0] == "predicted  1 of 6, 2 degraded"
    assert "4 ids have no slot (lines 5, 6, 7 ..)" in said[1]
    assert "cached in 1 rows, up to 12 s old; absent in 1 rows" in next(line for line in said if line.startswith("lab"))
    assert any(line.split()[:3] == ["host-2", "no", "answer"] for line in said)
