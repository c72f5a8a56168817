"""`dvfl split`, and `dvfl train` on what it made: tables that share some of their rows."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dvfl.cli import main

Refusal = Callable[..., str]


@pytest.fixture
def own(tables: dict[str, Path]) -> list[str]:
    """Options for tables of which the shop lacks 40 rows and the labels 20."""
    shop, labels = pd.read_csv(tables["shop"]), pd.read_csv(tables["labels"])
    shop[shop["id"] >= 40].to_csv(tables["shop"], index=False)
    labels.iloc[:100].to_csv(tables["labels"], index=False)
    return [
        "--table", str(tables["bank"]), "--table", str(tables["shop"]), "--labels", str(tables["labels"]), "--id", "id"
    ]  # fmt: skip


def test_a_table_is_split_and_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(size=(200, 4))
    frame = pd.DataFrame(x, columns=list("abcd")).assign(who=np.arange(200), paid=np.where(x[:, 0] > 0, "yes", "no"))
    frame.to_parquet(tmp_path / "whole.parquet")
    command = ["split", str(tmp_path / "whole.parquet"), "--id", "who", "--label", "paid", "--guests", "2"]
    assert main([*command, "--overlap", "0.4", "--labelled", "60", "--out", str(tmp_path / "made")]) == 0
    printed = capsys.readouterr().out
    assert "guest-1.parquet        140 rows, 2 columns and the id" in printed
    train = printed.splitlines()[-1].removeprefix("Train on it: dvfl ").split()
    short = ["--guest-epochs", "2", "--host-epochs", "2", "--owner-epochs", "2"]
    assert main([*train, *short, "--out", str(tmp_path / "run")]) == 0
    captured = capsys.readouterr()
    assert (
        "rows: guest-1.parquet 140, guest-2.parquet 140, labels.parquet 60; in every table: 80; labelled: 60, of which"
        " in every table: 60"
    ) in captured.err


def test_rows_that_a_table_lacks_are_trained_on_and_the_overlap_is_printed(
    own: list[str], short: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loud = [option for option in short if option != "--quiet"]
    assert main(["train", *own, *loud, "--entity-augmentation", "--out", str(tmp_path / "run")]) == 0
    assert "labelled: 100, of which in every table: 60" in capsys.readouterr().err
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["settings"]["guest_dropout"] > 0 and config["settings"]["entity_augmentation"]
    assert "of which in every table: 60" in (tmp_path / "run" / "report.html").read_text()


def test_other_strategies_say_that_they_train_on_less(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--epochs", "2", "--out", str(tmp_path / "run")]
    assert main(["train", *own, *out, "--strategy", "splitnn-zeros"]) == 0
    assert "of 80 labelled rows that every guest has" in capsys.readouterr().err
    assert "of 80 labelled rows that every guest has" in (tmp_path / "run" / "report.html").read_text()
    assert main(["train", "--resume", *out[2:]]) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "either TABLE or --dataset NAME is right"),
        (["t.csv", "--dataset", "digits"], "either TABLE or --dataset NAME"),
        (["t.csv"], "--id COLUMN and --label COLUMN are needed"),
        (["--dataset", "digits", "--test", "0.2"], "go with TABLE"),
        (["--dataset", "digits", "--guests", "9"], "9 guests cannot share 8 rows of pixels"),
        (["--dataset", "digits", "--labelled", "2000"], "--labelled 2000: from 1 to 431 is right"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["split", *arguments, "--out", str(tmp_path / "made")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not (tmp_path / "made").exists()


def test_entity_augmentation_goes_with_dvfl_alone(refusal: Refusal) -> None:
    assert "goes with --strategy dvfl alone" in refusal("--strategy", "fedonce", "--entity-augmentation")
    assert "does not go with --strategy vafl" in refusal("--strategy", "vafl", "--entity-augmentation")
    assert "the labels are numbers" in refusal("--dataset", "diabetes", "--entity-augmentation")
