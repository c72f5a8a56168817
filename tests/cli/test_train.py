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
from dvfl.settings.training import Settings
from dvfl.simulation import storage
from dvfl.strategies import STRATEGIES

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


def test_it_trains_on_so_many_rows(short: tuple[str, ...]) -> None:
    for rows in (64, 640):
        assert main(["train", *short, "--rows", str(rows), "--out", f"r{rows}"]) == 0
    few, many = (result(f"r{rows}")["megabytes_sent_per_guest"] for rows in (64, 640))
    assert isinstance(few, float) and many == pytest.approx(10 * few, rel=0.01)


@pytest.mark.parametrize("name", STRATEGIES)
def test_result_json_of_every_strategy_has_the_promised_fields(name: str) -> None:
    few = ["--epochs", "2"]
    if STRATEGIES[name].settings is Settings:
        few = ["--guest-epochs", "1", "--host-epochs", "1", "--owner-epochs", "2"]
    faults = "host:0:0" if name in ("splitnn-wait", "fedvs") else "connection:0.1:0.5"  # those stall
    assert main(["train", "--quiet", "--strategy", name, *few, "--seeds", "2", "--faults", faults, "--out", "r"]) == 0
    r = result("r")
    assert set(r) == SCHEMA | ({"requests_repeated"} if name in ("splitnn-wait", "fedonce") else set())
    hosts = {"dvfl-hostless": 0}.get(name, 4 if STRATEGIES[name].sends == "encodings" else 1)
    assert (r["strategy"], r["hosts"], r["faults"], r["status"]) == (name, hosts, [faults], "ok")
    accuracy = r["accuracy"]
    assert isinstance(accuracy, list) and len(accuracy) == 2 and all(0 <= a <= 100 for a in accuracy)
    assert r["accuracy_mean"] == pytest.approx(np.mean(accuracy))
    assert r["accuracy_2sigma"] == pytest.approx(2 * np.std(accuracy, ddof=1))
    seconds, sent = r["seconds"], r["megabytes_sent_per_guest"]
    assert isinstance(seconds, dict) and set(seconds) == {"guests", "hosts", "owner", "total"}
    assert isinstance(sent, float) and sent > 0
    files = {"config.json", "result.json", "history.json", "models", "report.html"}
    assert {path.name for path in Path("r").iterdir()} == files


def test_what_makes_a_variant_cannot_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["train", "--strategy", "dvfl-hostless", "--hosts", "2", "--out", "r"])
    told = capsys.readouterr().err
    assert status == 2 and not Path("r").exists()
    assert told == "dvfl: --hosts is 0 in --strategy dvfl-hostless; --strategy dvfl takes others\n"


def test_waiting_in_vain_is_a_result_without_numbers(outages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--strategy", "splitnn-wait", "--seeds", "2", "--faults", f"recorded:{outages}", "--out", "r"]
    assert main(["train", "--quiet", *given]) == 0
    r = result("r")
    assert (r["status"], r["accuracy"]) == ("stalled at round 7", [None, None])
    assert (r["accuracy_mean"], r["accuracy_2sigma"]) == (None, None)
    assert re.search(r"^status +stalled at round 7$", capsys.readouterr().out, re.MULTILINE)
    assert "seed 1 at round 7" in Path("r/report.html").read_text()


def test_with_retries_waiting_gets_through_and_counts_what_it_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--strategy", "splitnn-wait", "--epochs", "2", "--faults", "guest:0.1:0.5"]
    assert main(["train", "--quiet", *given, "--out", "impatient"]) == 0
    assert str(result("impatient")["status"]).startswith("stalled at round ")
    capsys.readouterr()
    assert main(["train", "--quiet", *given, "--retries", "60", "--out", "patient"]) == 0
    r = result("patient")
    assert r["status"] == "ok" and isinstance(r["requests_repeated"], int) and r["requests_repeated"] > 0
    assert f"asked again     {r['requests_repeated']:,}" in capsys.readouterr().out
    assert main(["train", "--quiet", *given[:-2], "--out", "calm"]) == 0
    assert result("calm")["accuracy"] == r["accuracy"]


def test_a_number_of_hosts_for_a_strategy_that_has_one_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--strategy", "splitnn-zeros", "--epochs", "1", "--hosts", "4", "--out", "r"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == "splitnn-zeros has one host; --hosts 4 has no effect"
    assert result("r")["hosts"] == 1


def test_more_stragglers_than_the_code_bears_are_a_result_without_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.csv").write_text("party,down,up\nguest-1,9,10\nguest-2,9,10\n")
    Path("one.csv").write_text("party,down,up\nguest-1,9,10\n")
    for record in ("one", "two"):
        given = ["--strategy", "fedvs", "--epochs", "1", "--faults", f"recorded:{record}.csv", "--out", record]
        assert main(["train", "--quiet", *given]) == 0
    assert result("one")["status"] == "ok"
    r = result("two")
    assert (r["status"], r["accuracy"]) == ("stalled at round 9", [None])
    assert re.search(r"^status +stalled at round 9$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("strategy", ["dvfl", "splitnn-zeros"])
def test_recorded_outages_are_read_from_their_file(strategy: str, outages: Path, short: tuple[str, ...]) -> None:
    few = short if strategy == "dvfl" else ("--quiet", "--epochs", "2")
    given = ["train", *few, "--strategy", strategy]
    assert main([*given, "--faults", f"recorded:{outages}", "--out", "r"]) == 0
    assert main([*given, "--out", "calm"]) == 0
    assert result("r")["faults"] == [f"recorded:{outages}"]
    models = [Path(run, "models", "guest-2.safetensors").read_bytes() for run in ("r", "calm")]
    assert models[0] != models[1]


@pytest.mark.parametrize("faults", [("delay:3", "reorder:2", "duplicate:4"), ("corrupt:noise:hosts:rows-0-1",)])
def test_late_and_wrong_messages_are_dvfls_to_bear(faults: tuple[str, ...], short: tuple[str, ...]) -> None:
    given = [part for text in faults for part in ("--faults", text)]
    assert main(["train", *short, *given, "--out", "r"]) == 0
    assert result("r")["faults"] == list(faults)


def test_registers_may_be_kept_row_by_row(short: tuple[str, ...]) -> None:
    for registers in ("batch", "row"):
        assert main(["train", *short, "--registers", registers, "--out", registers]) == 0
        settings = json.loads(Path(registers, "config.json").read_text())["settings"]
        assert settings["registers"] == registers
    hosts = [Path(registers, "models", "host-1.safetensors").read_bytes() for registers in ("batch", "row")]
    assert hosts[0] != hosts[1]
    assert set(result("row")) == SCHEMA


def test_guests_and_hosts_may_learn_by_simclr(short: tuple[str, ...]) -> None:
    given = ["--guest-objective", "simclr", "--host-objective", "simclr", "--temperature", "0.2"]
    assert main(["train", *short, *given, "--out", "r"]) == 0
    settings = json.loads(Path("r", "config.json").read_text())["settings"]
    assert (settings["guest_objective"], settings["host_objective"], settings["temperature"]) == (
        "simclr",
        "simclr",
        0.2,
    )
    assert set(result("r")) == SCHEMA


def test_guests_may_learn_against_a_decoder(short: tuple[str, ...]) -> None:
    against = ["--guest-objective", "simclr", "--adversary", "0.3"]
    for out, period in (("once", []), ("often", ["--period", "1"])):
        assert main(["train", *short, *against, *period, "--out", out]) == 0
        settings = json.loads(Path(out, "config.json").read_text())["settings"]
        assert settings["adversary"] == 0.3
        assert settings["period"] == (1 if period else settings["guest_epochs"])
        assert set(result(out)) == SCHEMA


def test_what_leaves_guests_may_be_clipped_and_noisy(short: tuple[str, ...]) -> None:
    for noise in ("0.1", "30"):
        assert main(["train", *short, "--clip", "2", "--noise", noise, "--out", noise]) == 0
        settings = json.loads(Path(noise, "config.json").read_text())["settings"]
        assert (settings["clip"], settings["noise"]) == (2.0, float(noise))
        assert set(result(noise)) == SCHEMA
    guests, hosts = (
        [Path(noise, "models", f"{party}-1.safetensors").read_bytes() for noise in ("0.1", "30")]
        for party in ("guest", "host")
    )
    assert guests[0] == guests[1] and hosts[0] != hosts[1]


def test_the_papers_simclr_has_no_host() -> None:
    few = ["--guest-epochs", "1", "--owner-epochs", "1"]
    assert main(["train", "--quiet", "--preset", "paper", "--guest-objective", "simclr", *few, "--out", "r"]) == 0
    assert result("r")["hosts"] == 0
    assert json.loads(Path("r", "config.json").read_text())["settings"]["batch"] == 600


def test_the_report_of_a_split_network_says_that_gradients_go_back() -> None:
    assert main(["train", "--quiet", "--strategy", "splitnn-skip", "--epochs", "1", "--out", "r"]) == 0
    page = Path("r/report.html").read_text()
    assert "gradients go <b>back</b>" in page and "and as much sent back" in page
    assert "Nothing flows back" not in page


def test_the_report_of_fedvs_counts_shares_and_gradients_apart() -> None:
    assert main(["train", "--quiet", "--strategy", "fedvs", "--epochs", "1", "--out", "r"]) == 0
    page = Path("r/report.html").read_text()
    assert "once, before it" in page and "and 0.19 MB sent back" in page
    assert "as much" not in page


def test_a_split_network_for_a_regression_has_r2() -> None:
    given = ["--strategy", "splitnn-zeros", "--dataset", "diabetes", "--epochs", "2", "--out", "r"]
    assert main(["train", "--quiet", *given]) == 0
    assert set(result("r")) == SCHEMA | {"r2", "r2_mean", "r2_2sigma"}


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


def test_absent_parties_are_learned_to_do_without_and_what_is_given_stays(short: tuple[str, ...]) -> None:
    assert main(["train", *short, "--absent", "--partial", "1", "--out", "r"]) == 0
    settings = json.loads(Path("r/config.json").read_text())["settings"]
    assert settings["guest_dropout"] > 0 and settings["host_dropout"] > 0 and settings["partial"] == 1
    assert "partial" in Path("r/report.html").read_text()
    Path("r/result.json").unlink()
    assert main(["train", *short, "--absent", "--partial", "1", "--resume", "--out", "r"]) == 0
