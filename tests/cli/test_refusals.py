"""What `dvfl train` refuses: one line that says what would be right, status 2, and nothing left behind."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch

Refusal = Callable[..., str]


def test_an_unknown_data_set_gets_the_nearest_name(refusal: Refusal) -> None:
    assert "'digitz'; did you mean 'digits'?" in refusal("--dataset", "digitz")


def test_an_unknown_strategy_gets_the_known_names(refusal: Refusal) -> None:
    assert "'dvlf'; did you mean 'dvfl'?" in refusal("--strategy", "dvlf")


def test_an_unknown_preset_gets_the_nearest_name(refusal: Refusal) -> None:
    assert "did you mean 'tuned'?" in refusal("--preset", "tund")


@pytest.mark.parametrize(
    "faults", ["guest", "guest:0.1", "gast:0.1:0.1", "guest:often:0.1", "guest:1.5:0.1", "guest:nan:1"]
)
def test_wrong_faults_are_named(faults: str, refusal: Refusal) -> None:
    assert f"--faults {faults}" in refusal("--faults", faults)


def test_a_batch_larger_than_the_data(refusal: Refusal) -> None:
    line = refusal("--batch", "5000")
    assert "5000" in line and "at most 1437" in line


def test_more_guests_than_columns(refusal: Refusal) -> None:
    assert "from 1 to 8 guests" in refusal("--guests", "9")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(refusal: Refusal) -> None:
    assert "--device cpu or auto is right" in refusal("--device", "cuda")


def test_a_used_folder(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "notes.txt").write_text("mine")
    assert "already used; --resume continues it, another --out starts anew" in refusal("--out", tmp_path / "r")


def test_a_used_folder_is_refused_before_data_are_looked_for(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "already used" in refusal("--out", tmp_path, "--dataset", "credit_card")


def test_a_folder_that_cannot_be_made(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert f"{tmp_path / 'file'} is a file" in refusal("--out", tmp_path / "file" / "sub" / "r")


def test_a_file_in_the_folders_place(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file" in refusal("--out", tmp_path / "file")


def test_a_refused_run_leaves_no_out_folder(refusal: Refusal, tmp_path: Path) -> None:
    refusal("--batch", "5000", "--out", tmp_path / "deep" / "r")


def test_resume_where_no_run_is(refusal: Refusal, tmp_path: Path) -> None:
    assert "no run to resume" in refusal("--resume", "--out", tmp_path / "r")
    assert "--out" in refusal("--resume")


def test_a_missing_file_is_named(refusal: Refusal, tables: dict[str, Path], tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.csv"
    assert str(missing) in refusal(
        "--table", tables["bank"], "--table", missing, "--labels", tables["labels"], "--id", "id"
    )


def test_a_table_without_the_id_column(refusal: Refusal, tables: dict[str, Path]) -> None:
    line = refusal("--table", tables["bank"], "--labels", tables["labels"], "--id", "customer")
    assert "bank.csv" in line and "customer" in line


def test_duplicate_ids(refusal: Refusal, tables: dict[str, Path]) -> None:
    table = pd.read_csv(tables["bank"])
    pd.concat([table, table[:3]]).to_csv(tables["bank"], index=False)
    assert "bank.csv" in refusal("--table", tables["bank"], "--labels", tables["labels"], "--id", "id")


def test_ids_that_never_overlap(refusal: Refusal, tables: dict[str, Path]) -> None:
    pd.read_csv(tables["bank"]).assign(id=range(1000, 1120)).to_csv(tables["bank"], index=False)
    assert "no id is in all tables" in refusal("--table", tables["bank"], "--labels", tables["labels"], "--id", "id")


def test_missing_values_where_they_are_forbidden(refusal: Refusal, tables: dict[str, Path]) -> None:
    table = pd.read_csv(tables["bank"])
    table.loc[4, "y"] = None
    table.to_csv(tables["bank"], index=False)
    given = ("--table", tables["bank"], "--labels", tables["labels"], "--id", "id", "--missing", "forbid")
    assert "'y'" in refusal(*given)


def test_labels_of_one_class(refusal: Refusal, tables: dict[str, Path]) -> None:
    pd.read_csv(tables["labels"]).assign(paid="yes").to_csv(tables["labels"], index=False)
    assert "same label" in refusal("--table", tables["bank"], "--labels", tables["labels"], "--id", "id")


def test_tables_without_labels_or_id(refusal: Refusal, tables: dict[str, Path]) -> None:
    assert "--labels" in refusal("--table", tables["bank"], "--id", "id")
    assert "--id" in refusal("--table", tables["bank"], "--labels", tables["labels"])


def test_labels_without_tables(refusal: Refusal, tables: dict[str, Path]) -> None:
    assert "--labels goes with --table" in refusal("--labels", tables["labels"])


def test_a_data_set_and_tables_at_once(refusal: Refusal, tables: dict[str, Path]) -> None:
    given = ("--table", tables["bank"], "--labels", tables["labels"], "--id", "id", "--dataset", "digits")
    assert "--dataset does not go with --table" in refusal(*given)
