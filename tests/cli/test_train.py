"""`dvfl train` from its options to a run folder."""

import contextlib
import json
import os
import pty
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import numpy as np
import pandas as pd
import pytest

from dvfl.cli import main
from dvfl.strategies import storage

SCHEMA = {
    "strategy", "dataset", "preset", "hosts", "faults", "device", "seeds", "accuracy", "accuracy_mean",
    "accuracy_2sigma", "status", "seconds", "megabytes_sent_per_guest",
}  # fmt: skip


def result(folder: str) -> dict[str, object]:
    value: dict[str, object] = json.loads(Path(folder, "result.json").read_text())
    return value


def test_result_json_has_the_promised_fields(short: tuple[str, ...]) -> None:
    assert (
        main(["train", *short, "--seeds", "3", "--faults", "guest:0.3:0.5", "--faults", "host:0.1:1", "--out", "r"])
        == 0
    )
    r = result("r")
    assert set(r) == SCHEMA
    assert (r["strategy"], r["dataset"], r["preset"], r["hosts"]) == ("dvfl", "digits", "tuned", 4)
    assert (r["faults"], r["seeds"], r["status"]) == (["guest:0.3:0.5", "host:0.1:1"], [0, 1, 2], "ok")
    accuracy = r["accuracy"]
    assert isinstance(accuracy, list) and len(accuracy) == 3 and all(0 <= a <= 100 for a in accuracy)
    assert r["accuracy_mean"] == pytest.approx(np.mean(accuracy))
    assert r["accuracy_2sigma"] == pytest.approx(2 * np.std(accuracy, ddof=1))
    seconds = r["seconds"]
    assert isinstance(seconds, dict) and set(seconds) == {"guests", "hosts", "owner", "total"}
    assert seconds["total"] >= max(seconds["guests"], seconds["hosts"], seconds["owner"]) > 0


def test_megabytes_are_those_of_the_rounds(short: tuple[str, ...]) -> None:
    assert main(["train", *short, "--preset", "paper", "--hosts", "2", "--batch", "100", "--out", "r"]) == 0
    latent = json.loads(Path("r/models/manifest.json").read_text())["shape"]["columns"][0] * 3 // 4  # the table rule
    assert result("r")["megabytes_sent_per_guest"] == pytest.approx(2 * 2 * 1500 * latent * 4 / 1e6)


def test_without_hosts_a_guest_sends_its_encodings_once(short: tuple[str, ...]) -> None:
    assert main(["train", *short, "--preset", "paper", "--hosts", "0", "--out", "r"]) == 0
    assert result("r")["megabytes_sent_per_guest"] == pytest.approx(1437 * 12 * 4 / 1e6)


def test_one_seed_has_no_spread(short: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *short, "--out", "r"]) == 0
    assert result("r")["accuracy_2sigma"] == 0.0
    assert "±" not in capsys.readouterr().out


def test_a_regression_has_r2_and_no_accuracy(short: tuple[str, ...]) -> None:
    assert main(["train", *short, "--dataset", "diabetes", "--seeds", "2", "--out", "r"]) == 0
    r = result("r")
    assert set(r) == SCHEMA | {"r2", "r2_mean", "r2_2sigma"}
    assert (r["accuracy"], r["accuracy_mean"], r["accuracy_2sigma"]) == (None, None, None)
    assert r["r2_mean"] == pytest.approx(np.mean(r["r2"]))  # type: ignore[arg-type]


def test_a_finished_folder_holds_everything_but_a_checkpoint(short: tuple[str, ...]) -> None:
    assert main(["train", *short, "--out", "deep/r"]) == 0
    names = {path.name for path in Path("deep/r").iterdir()}
    assert names == {"config.json", "result.json", "history.json", "models", "report.html"}


def test_the_history_has_every_partys_losses(short: tuple[str, ...]) -> None:
    assert main(["train", *short, "--preset", "paper", "--seeds", "2", "--hosts", "3", "--out", "r"]) == 0
    history = json.loads(Path("r/history.json").read_text())
    assert list(history["guests"]) == ["rows-0-1", "rows-2-3", "rows-4-5", "rows-6-7"]
    assert list(history["hosts"]) == ["host-1", "host-2", "host-3"]
    assert np.shape(history["guests"]["rows-0-1"]) == (2, 2)
    assert np.shape(history["hosts"]["host-3"]) == (2, 3)
    assert np.shape(history["owner"]) == np.shape(history["held_out_score"]) == (2, 2)


def test_ones_own_tables_are_joined_and_their_encoders_kept(tables: dict[str, Path], short: tuple[str, ...]) -> None:
    shop = tables["shop"].with_suffix(".parquet")
    pd.read_csv(tables["shop"]).to_parquet(shop)
    tabular = ["--table", str(tables["bank"]), "--table", str(shop), "--labels", str(tables["labels"]), "--id", "id"]
    assert main(["train", *short, *tabular, "--out", "r"]) == 0
    assert result("r")["dataset"] == "labels"
    _, extra = storage.load(Path("r/models"))
    assert extra["guests"] == ["bank", "shop"] and extra["classes"] == ["no", "yes"]
    assert [column["name"] for column in extra["encoders"][1]["columns"]] == ["u", "v"]


def test_without_out_a_fresh_folder_is_made_each_time(short: tuple[str, ...]) -> None:
    for _ in range(2):
        assert main(["train", *short]) == 0
    runs = sorted(path.name for path in Path("runs").iterdir())
    assert len(runs) == 2 and all(re.match(r"digits-dvfl-\d{8}-\d{6}", name) for name in runs)


def test_an_empty_folder_may_be_used(short: tuple[str, ...]) -> None:
    Path("r").mkdir()
    assert main(["train", *short, "--out", "r"]) == 0


def test_a_pipe_gets_plain_text_and_few_lines(process: Callable[..., Popen[str]], tmp_path: Path) -> None:
    run = process(
        "train", "--owner-epochs", "40", "--guest-epochs", "30", "--host-epochs", "40", "--out", tmp_path / "r"
    )
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0
    assert "\x1b" not in out + err and "\r" not in out + err
    assert str(tmp_path / "r" / "report.html") in out
    lines = err.splitlines()
    assert 2 <= len(lines) <= 12
    assert re.match(r"guests and hosts: epoch 1 of 80, .* left$", lines[0])


def test_quiet_leaves_stderr_empty(short: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *short, "--out", "r"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "" and captured.out.startswith("dataset")


def test_a_terminal_gets_a_bar_with_the_time_left(process: Callable[..., Popen[str]], tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    run = process("train", "--out", tmp_path / "r", stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that the other side has gone
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0
    assert b"epochs" in shown and b"/s" in shown and b"left" in shown
    assert "\x1b" not in out
