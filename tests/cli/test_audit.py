"""`dvfl audit` of a run, from its recording to its pages, and what it refuses."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from dvfl.audit.audit import PARTS
from dvfl.cli import main

SHORT = ("--quiet", "--guest-epochs", "2", "--host-epochs", "3", "--owner-epochs", "8", "--rows", "400")
ALONE = ("--small", "--alone", "--quiet", "--known", "50")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a moment, recorded."""
    path = tmp_path_factory.mktemp("audited") / "run"
    assert main(["train", *SHORT, "--seeds", "2", "--record", "--out", str(path)]) == 0
    return path


def test_an_audit_writes_figures_pages_and_plots_and_goes_on_where_it_was(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit"
    command = ["audit", str(run), "--out", str(out), *ALONE, "--defence", "shield-0.5"]
    assert main(command) == 0
    assert capsys.readouterr().out.strip() == str(out / "audit.html")
    made = json.loads((out / "audit.json").read_text())
    assert [one["defence"] for one in made["findings"]] == ["none", "shield-0.5"]
    for finding in made["findings"]:
        assert len(finding["accuracy"]) == 2
        attacks = {figure["attack"] for figure in finding["figures"]}
        assert attacks >= {"inversion", "collusion", "probing", "predictions", "membership", "completion", "backdoor"}
        feedback = [one for one in finding["figures"] if one["attack"] == "gradient_labels"]
        assert feedback and not any(one["channel"] for one in feedback)
    controls = {one["control"] for one in made["findings"][0]["figures"] if one["attack"] == "inversion"}
    assert controls == {"", "raw features", "random encoder"}
    repeated, sent_once = (
        {one["attack"] for one in finding["figures"] if one["way"].endswith("earlier releases too")}
        for finding in made["findings"]
    )
    assert repeated == {"inversion", "probing"} and not sent_once
    page = (out / "audit.html").read_text()
    assert "a host" in page and "<svg" in page and "http" not in page.replace("http://www.w3.org", "")
    assert "five or more are right" in page  # two seeds are not enough to quote
    assert (out / "inversion-50.svg").is_file()
    parts = {file: file.stat().st_mtime_ns for file in (out / PARTS).glob("*.json")}
    missing = out / PARTS / "dvfl-none.membership.json"
    missing.unlink()
    assert main(command) == 0
    again = {file: file.stat().st_mtime_ns for file in (out / PARTS).glob("*.json")}
    assert {file for file in again if again[file] != parts[file]} == {missing}
    assert json.loads((out / "audit.json").read_text())["findings"][0]["accuracy"] == made["findings"][0]["accuracy"]


def test_a_split_network_is_audited_with_its_gradients(tmp_path: Path) -> None:
    path, out = tmp_path / "run", tmp_path / "audit"
    options = ["--strategy", "splitnn-wait", "--epochs", "8", "--rows", "400", "--record", "--out", str(path)]
    assert main(["train", "--quiet", *options]) == 0
    assert main(["audit", str(path), "--out", str(out), *ALONE, "--defence", "none"]) == 0
    figures = json.loads((out / "audit.json").read_text())["findings"][0]["figures"]
    best = max(sum(one["values"]) for one in figures if one["attack"] == "gradient_labels" and one["channel"])
    assert best > 0.8


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a refused audit says."""
    assert main(["audit", *words]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert captured.out == ""
    return line


def test_a_run_without_recordings_is_refused_with_the_switch_that_makes_them(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(run, bare)
    (bare / "recorded.safetensors").unlink()
    assert "dvfl train --record" in refused(capsys, str(bare), "--out", "audit", *ALONE)
    assert not Path("audit").exists()


def test_a_finished_audit_is_written_again_without_recordings(run: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(run, bare)
    command = ["audit", str(bare), "--out", "audit", "--alone", "--small", "--quiet", "--defence", "none"]
    assert main([*command, "--known", "10"]) == 0
    (bare / "recorded.safetensors").unlink()
    page = Path("audit", "audit.html")
    page.unlink()
    assert main([*command, "--known", "10"]) == 0
    assert page.is_file()


def test_a_run_with_faults_is_refused_before_it_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--faults", "guest:0.3:0.5", "--record", "--out", str(tmp_path / "run")]
    assert main(["train", *SHORT, *words]) == 2
    assert "--record does not go with --faults" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_recording_that_was_cut_short_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(run, cut)
    file = cut / "recorded.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    assert "recorded.safetensors: cannot be read" in refused(capsys, str(cut), "--out", "audit", *ALONE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--known", "100000"), "--known 100000: at most 320"),
        (("--defence", "sheild-0.5"), "did you mean 'shield-0.5'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(
    run: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, str(run), "--out", "audit", "--alone", "--small", *words)
    assert not Path("audit", PARTS, "dvfl-none.about.json").exists()


def test_encoders_of_dp_sgd_are_made_where_opacus_is_and_serve_where_it_is_not(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")
    out = tmp_path / "audit"
    command = ["audit", str(run), "--out", str(out), *ALONE, "--defence", "dp-sgd"]
    assert main([*command, "--dp-encoders"]) == 0
    assert capsys.readouterr().out.strip() == str(out / PARTS / "dp-sgd.encoders.safetensors")
    assert not (out / "audit.json").exists()
    monkeypatch.setitem(sys.modules, "opacus", None)  # as if it were not installed
    assert main(command) == 0
    finding = json.loads((out / "audit.json").read_text())["findings"][1]
    assert finding["defence"] == "dp-sgd"
    assert {one["attack"] for one in finding["figures"]} >= {"inversion", "completion", "backdoor"}
    assert [one for one in finding["figures"] if one["way"].startswith("inflated") and not one["channel"]]


def test_encoders_of_a_defence_that_is_not_wanted_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--out", "audit", *ALONE, "--defence", "none", "--dp-encoders")
    assert "--defence dp-sgd, or all, is right" in refused(capsys, str(run), *words)


def test_a_folder_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "neither a run folder" in refused(capsys, str(tmp_path), "--out", "audit")


@pytest.mark.parametrize("words", [("--defence", "narrow"), ("--alone",), ("--dp-encoders",)])
def test_what_is_for_runs_is_refused_of_a_party(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "party.toml").write_text("")
    assert f"{words[0]} is for runs" in refused(capsys, str(tmp_path), "--out", "audit", *words)


def test_a_folder_that_was_begun_otherwise_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (str(run), "--out", "audit", "--alone", "--small", "--quiet", "--defence", "none")
    assert main(["audit", *words, "--known", "10"]) == 0
    capsys.readouterr()
    assert "other attackers (--small, --known)" in refused(capsys, *words, "--known", "20")


def test_a_run_that_was_stopped_goes_on_recording(tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert main(["train", *SHORT, "--record", "--out", str(path)]) == 0
    assert json.loads((path / "config.json").read_text())["record"] is True
    (path / "result.json").unlink()
    (path / "recorded.safetensors").unlink()
    assert main(["train", "--quiet", "--resume", "--out", str(path)]) == 0
    assert (path / "recorded.safetensors").is_file()


def test_a_shield_changes_what_leaves_guests_and_is_refused_where_it_means_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *SHORT, "--shield", "0.5", "--out", str(tmp_path / "run")]) == 0
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]
    assert settings["flatten"] and settings["noise"] > 0 and settings["guest_objective"] == "simclr"
    capsys.readouterr()
    assert main(["train", *SHORT, "--shield", "-1", "--out", str(tmp_path / "other")]) == 2
    assert "shield -1.0" in capsys.readouterr().err
    assert main(["train", "--quiet", "--strategy", "vafl", "--shield", "0.5", "--out", str(tmp_path / "third")]) == 2
    assert "--strategy dvfl alone" in capsys.readouterr().err


def test_an_epsilon_makes_noise_and_is_refused_where_it_means_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")
    path = tmp_path / "run"
    short = [word for word in SHORT if word != "--quiet"]
    assert main(["train", *short, "--clip", "2", "--epsilon", "5", "--out", str(path)]) == 0
    assert "noise: epsilon 5 at delta 1e-05 for the encodings of one row of a guest, sent 3 times" in (
        capsys.readouterr().err
    )
    for words, said in (
        (["--clip", "2", "--epsilon", "0"], "epsilon 0.0: a number above 0 is right"),
        (["--clip", "2", "--epsilon", "nan"], "epsilon nan: a number above 0 is right"),
        (["--clip", "2", "--epsilon", "1e-9"], "no noise that can be counted gives as little"),
        (["--epsilon", "5"], "epsilon 5.0 without clip"),
        (["--epsilon", "5", "--strategy", "vafl"], "--epsilon does not go with --strategy vafl"),
    ):
        options = () if "--strategy" in words else SHORT
        assert main(["train", *words, *options, "--out", str(tmp_path / "none")]) == 2
        assert said in capsys.readouterr().err
    assert main(["train", "--resume", "--epsilon", "5", "--out", str(path)]) == 2
    assert "--epsilon cannot be changed" in capsys.readouterr().err


@pytest.mark.parametrize("strategy", ["vfb2", "fedvs"])
def test_sums_of_encodings_are_audited_and_their_gradients_tell_labels(tmp_path: Path, strategy: str) -> None:
    path, out = tmp_path / "run", tmp_path / "audit"
    words = ["--strategy", strategy, "--epochs", "8", "--rows", "400", "--record", "--out", str(path)]
    assert main(["train", "--quiet", *words]) == 0
    assert main(["audit", str(path), "--out", str(out), *ALONE, "--defence", "gradient-sign"]) == 0
    plain, signs = json.loads((out / "audit.json").read_text())["findings"]
    assert (plain["strategy"], signs["defence"]) == (strategy, "gradient-sign")
    saw = {one["saw"] for one in plain["figures"] if one["attack"] == "inversion" and one["way"] == "ridge"}
    assert saw == {"sums of all guests' encodings"}
    for finding in (plain, signs):
        feedback = [one for one in finding["figures"] if one["attack"] == "gradient_labels"]
        assert feedback and all(one["channel"] for one in feedback)
        assert max(sum(one["values"]) for one in feedback) > 0.7
        assert {one["attack"] for one in finding["figures"]} >= {"completion", "backdoor", "membership"}


def test_fedonce_is_audited_and_has_no_defence_of_pushes(tmp_path: Path) -> None:
    path, out = tmp_path / "run", tmp_path / "audit"
    short = ["--guest-epochs", "2", "--owner-epochs", "2", "--rows", "300", "--record"]
    assert main(["train", "--quiet", "--strategy", "fedonce", *short, "--out", str(path)]) == 0
    assert main(["audit", str(path), "--out", str(out), *ALONE, "--defence", "once", "--defence", "narrow"]) == 0
    findings = json.loads((out / "audit.json").read_text())["findings"]
    assert [(one["strategy"], one["defence"]) for one in findings] == [("fedonce", "none"), ("fedonce", "narrow")]


@pytest.mark.parametrize("strategy", ["dvfl", "splitnn-wait"])
def test_tables_that_share_some_of_their_rows_are_audited_by_those(tmp_path: Path, strategy: str) -> None:
    split = ["--dataset", "digits", "--guests", "2", "--overlap", "0.3", "--out", str(tmp_path / "tables")]
    assert main(["split", *split]) == 0
    tables = [str(tmp_path / "tables" / name) for name in ("guest-1.parquet", "guest-2.parquet")]
    path, out = tmp_path / "run", tmp_path / "audit"
    words = [*(word for table in tables for word in ("--table", table)), "--id", "id", "--record", "--out", str(path)]
    words += ["--labels", str(tmp_path / "tables" / "labels.parquet"), "--strategy", strategy]
    short = ["--guest-epochs", "2", "--owner-epochs", "2"] if strategy == "dvfl" else ["--epochs", "2"]
    assert main(["train", "--quiet", *words, *short]) == 0
    short = ["--small", "--quiet", "--known", "50", "--defence", "shield-0.5", "--defence", "gradient-sign"]
    assert main(["audit", str(path), "--out", str(out), *short]) == 0
    findings = json.loads((out / "audit.json").read_text())["findings"]
    assert {one["strategy"] for one in findings} == {"dvfl", "splitnn-wait"} and len(findings) == 4


@pytest.mark.parametrize("strategy", ["dvfl", "splitnn-wait"])
def test_labels_that_are_numbers_are_told_by_halves(tmp_path: Path, strategy: str) -> None:
    path, out = tmp_path / "run", tmp_path / "audit"
    words = ["--dataset", "diabetes", "--strategy", strategy, "--record", "--out", str(path)]
    short = ["--guest-epochs", "10", "--host-epochs", "10"] if strategy == "dvfl" else []
    assert main(["train", "--quiet", *words, *short]) == 0
    assert main(["audit", str(path), "--out", str(out), *ALONE, "--defence", "none"]) == 0
    made = json.loads((out / "audit.json").read_text())
    (finding,) = made["findings"]
    assert made["score"] == "R2" and "above the median" in made["note"]
    assert finding["accuracy"] == json.loads((path / "result.json").read_text())["r2"]
    told = {one["attack"]: one for one in finding["figures"] if not one["control"]}
    assert set(told) >= {"inversion", "predictions", "membership", "completion", "backdoor"}
    assert told["predictions"]["saw"] == "predicted numbers"
    best = max(sum(one["values"]) for one in finding["figures"] if one["attack"] == "completion")
    assert best > 55  # of two halves
    if strategy != "dvfl":
        feedback = [sum(one["values"]) for one in finding["figures"] if one["attack"] == "gradient_labels"]
        assert max(feedback) > 0.8
    assert "| R2 |" in (out / "audit.md").read_text()
