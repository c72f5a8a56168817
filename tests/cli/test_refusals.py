"""What `dvfl train` refuses: one line that says what would be right, status 2, and nothing left behind."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch

from dvfl.cli import main

Refusal = Callable[..., str]


def test_an_unknown_data_set_gets_the_nearest_name(refusal: Refusal) -> None:
    assert "'digitz'; did you mean 'digits'?" in refusal("--dataset", "digitz")


def test_an_unknown_strategy_gets_the_known_names(refusal: Refusal) -> None:
    assert "'dvlf'; did you mean 'dvfl'?" in refusal("--strategy", "dvlf")


def test_an_unknown_preset_gets_the_nearest_name(refusal: Refusal) -> None:
    assert "did you mean 'tuned'?" in refusal("--preset", "tund")


@pytest.mark.parametrize(
    "faults",
    [
        "guest", "guest:0.1", "gast:0.1:0.1", "guest:often:0.1", "guest:1.5:0.1", "guest:nan:1", "host:0.1:-1",
        "recorded:nowhere.csv", "delay:0", "delay:soon", "corrupt:sign:hosts", "corrupt:sign:hosts:guest-9",
    ],
)  # fmt: skip
def test_wrong_faults_are_named(faults: str, refusal: Refusal) -> None:
    assert f"--faults {faults}" in refusal("--faults", faults)


def test_recorded_outages_of_a_party_that_is_not_there(refusal: Refusal, outages: Path) -> None:
    outages.write_text("party,down,up\nrows-0-1,1,2\nhost-2,1,2\n")
    line = refusal("--strategy", "splitnn-zeros", "--faults", f"recorded:{outages}")
    assert f"--faults recorded:{outages}: there is no party 'host-2'" in line and "hosts: host-1;" in line


def test_a_record_with_a_wrong_row(refusal: Refusal, outages: Path) -> None:
    outages.write_text("party,down,up\nrows-0-1,5,2\n")
    assert f"--faults recorded:{outages}: " in refusal("--faults", f"recorded:{outages}")


@pytest.mark.parametrize("faults", ["delay:2", "reorder:2", "duplicate:2", "corrupt:sign:hosts:rows-0-1"])
@pytest.mark.parametrize("strategy", ["splitnn-wait", "splitnn-mean", "fedonce", "vafl", "vfb2", "fedvs"])
def test_late_and_wrong_messages_where_they_are_not_defined(strategy: str, faults: str, refusal: Refusal) -> None:
    assert f"--faults {faults}: only dvfl defines" in refusal("--strategy", strategy, "--faults", faults)


@pytest.mark.parametrize(
    ("strategy", "option"),
    [
        ("dvfl", "--epochs"),
        ("dvfl", "--retries"),
        ("fedonce", "--epochs"),
        ("splitnn-skip", "--period"),
        ("splitnn-skip", "--temperature"),
        ("splitnn-skip", "--guest-epochs"),
        ("vafl", "--owner-epochs"),
    ],
)
def test_options_of_another_strategy(strategy: str, option: str, refusal: Refusal) -> None:
    assert f"{option} does not go with --strategy {strategy}" in refusal("--strategy", strategy, option, "2")


@pytest.mark.parametrize("strategy", ["fedonce", "splitnn-skip"])
def test_what_hosts_learn_by_where_none_learn(strategy: str, refusal: Refusal) -> None:
    assert "--host-objective " in refusal("--strategy", strategy, "--host-objective", "simclr")


def test_hosts_that_learn_by_simclr_in_a_preset_without_hosts(refusal: Refusal) -> None:
    given = ("--preset", "paper", "--guest-objective", "simclr", "--host-objective", "simclr")
    assert "there is no host that learns" in refusal(*given)


@pytest.mark.parametrize("temperature", ["0.01", "nan"])
def test_a_temperature_that_cannot_be_computed_with(temperature: str, refusal: Refusal) -> None:
    line = refusal("--guest-objective", "simclr", "--temperature", temperature)
    assert f"temperature {temperature}: 0.05 or more is right" in line


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (("--adversary", "0.3"), "adversary 0.3 does not go with guest_objective reconstruction"),
        (("--guest-objective", "simclr", "--adversary", "-1"), "adversary -1.0: 0 or more is right"),
        (("--guest-objective", "simclr", "--adversary", "inf"), "adversary inf: 0 or more is right"),
        (("--strategy", "vafl", "--adversary", "0.3"), "--adversary does not go with --strategy vafl"),
    ],
)
def test_adversaries_of_guests_that_learn_otherwise(options: tuple[str, ...], wrong: str, refusal: Refusal) -> None:
    assert wrong in refusal(*options)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (("--clip", "0"), "clip 0.0: a number above 0 is right"),
        (("--clip", "nan"), "clip nan: a number above 0 is right"),
        (("--clip", "1", "--noise", "-1"), "noise -1.0: 0 or more is right"),
        (("--clip", "1", "--noise", "inf"), "noise inf: 0 or more is right"),
        (("--noise", "0.5"), "noise 0.5 without clip"),
        (("--strategy", "splitnn-skip", "--clip", "1"), "--clip does not go with --strategy splitnn-skip"),
    ],
)
def test_clips_and_noises_that_mean_nothing(options: tuple[str, ...], wrong: str, refusal: Refusal) -> None:
    assert wrong in refusal(*options)


@pytest.mark.parametrize("strategy", ["fedonce", "splitnn-skip", "vafl"])
def test_row_registers_without_registers(strategy: str, refusal: Refusal) -> None:
    assert "--registers " in refusal("--strategy", strategy, "--registers", "row")


@pytest.mark.parametrize("strategy", ["splitnn-skip", "splitnn-zeros", "vafl", "vfb2"])
def test_faults_that_let_nobody_live_are_refused_before_anything_is_written(strategy: str, refusal: Refusal) -> None:
    line = refusal("--strategy", strategy, "--faults", "guest:1:0")
    assert "training cannot progress: with seed 0 every guest is dead" in line


@pytest.mark.parametrize("strategy", ["dvfl", "fedonce", "fedonce-zeros"])
def test_a_training_in_which_nobody_lives_ends_without_a_result(
    strategy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--strategy", strategy, "--faults", "guest:1:0", "--out", str(tmp_path / "r")]
    assert main(["train", "--quiet", *given]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("dvfl: training cannot progress: with seed 0 every guest is dead") and captured.out == ""
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["config.json"]


def test_too_few_guests_to_share_secrets(refusal: Refusal) -> None:
    line = refusal("--strategy", "fedvs", "--guests", "2")
    assert "fedvs shares secrets among 3 guests or more; these are 2" in line


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
    assert "no label is of an id in " in refusal("--table", tables["bank"], "--labels", tables["labels"], "--id", "id")


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
    given = ("--table", tables["bank"], "--labels", tables["labels"], "--id", "id")
    assert "--dataset does not go with --table" in refusal(*given, "--dataset", "digits")
    assert "--rows does not go with --table" in refusal(*given, "--rows", "100")


@pytest.mark.parametrize("rows", [5, 1438])
def test_a_number_of_rows_that_is_not_there(refusal: Refusal, rows: int) -> None:
    assert f"--rows {rows}: from 64 to 1437" in refusal("--rows", str(rows))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("--guest-dropout", "1.0"), "guest_dropout 1.0: from 0 to below 1"),
        (("--partial", "2"), "partial 2 with guest_dropout 0 hides nobody"),
        (("--partial", "2", "--guest-dropout", "0.2", "--hosts", "0"), "partial 2: no host learns here"),
        (("--strategy", "splitnn-zeros", "--partial", "2"), "--partial does not go with --strategy splitnn-zeros"),
        (("--strategy", "fedonce", "--host-dropout", "0.2"), "--host-dropout goes with --strategy dvfl alone"),
        (("--strategy", "vfb2", "--absent"), "reads sums alone"),
    ],
)
def test_parties_that_cannot_be_hidden(given: tuple[str, ...], named: str, refusal: Refusal) -> None:
    assert named in refusal(*given)


def test_gradients_that_nobody_defends(refusal: Refusal) -> None:
    assert "--gradient-noise does not go with --strategy dvfl" in refusal("--gradient-noise", "1")
