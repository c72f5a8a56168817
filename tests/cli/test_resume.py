"""A run that was stopped continues to exactly the result it would have had."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pandas as pd
import pytest
import torch

from dvfl.cli import main
from dvfl.files import sha256, write_json
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.decoupled.guest_phase import GuestPhase
from dvfl.strategies.decoupled.owner_phase import OwnerPhase
from dvfl.strategies.split.split_training import EndToEnd

LONG = (
    "--guest-epochs", "60", "--host-epochs", "70", "--owner-epochs", "15", "--seeds", "2", "--faults", "guest:0.2:0.5",
)  # fmt: skip
Start = Callable[..., "Popen[str]"]


def stop(run: "Popen[str]", sent: signal.Signals, status: int) -> str:
    """Sends a training run a signal after its first epoch; its last line, once it has ended with that status."""
    assert run.stderr is not None and "epoch 1 of" in run.stderr.readline()
    run.send_signal(sent)
    _, err = run.communicate(timeout=60)
    assert run.returncode == status
    return err.splitlines()[-1]


def learned(folder: Path) -> dict[str, object]:
    """Everything of a run that must not depend on whether it was stopped."""
    result = json.loads((folder / "result.json").read_text())
    del result["seconds"]
    models = {path.name: sha256(path) for path in (folder / "models").glob("*.safetensors")}
    return {"result": result, "history": json.loads((folder / "history.json").read_text()), "models": models}


def test_an_interrupted_run_resumes_to_the_same_result(process: Start, tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    other = process("train", *LONG, "--quiet", "--out", whole)
    line = stop(process("train", *LONG, "--out", stopped), signal.SIGINT, 130)
    assert line.startswith("dvfl: interrupted after ") and f"dvfl train --resume --out {stopped}" in line
    assert {path.name for path in stopped.iterdir()} == {"config.json", "checkpoint.safetensors"}
    again = process("train", "--quiet", "--resume", "--out", stopped)
    for waited in (again, other):
        waited.communicate(timeout=90)
        assert waited.returncode == 0
    assert not (stopped / "checkpoint.safetensors").exists()
    assert learned(stopped) == learned(whole)


def test_sigterm_saves_too_and_has_its_own_status(process: Start, tmp_path: Path) -> None:
    stop(process("train", *LONG, "--out", tmp_path / "r"), signal.SIGTERM, 143)
    assert (tmp_path / "r" / "checkpoint.safetensors").is_file()


def test_a_run_that_dies_under_the_owner_does_not_lose_phase_1(
    short: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def die(self: object) -> None:
        raise MemoryError("no memory is left")

    assert main(["train", *short, "--out", "whole"]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(OwnerPhase, "advance", die)
        assert main(["train", *short, "--out", "r"]) == 1
    assert "MemoryError" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(GuestPhase, "advance", die)  # phase 1 is not run again
        assert main(["train", "--quiet", "--resume", "--out", "r"]) == 0
    assert learned(Path("r")) == learned(Path("whole"))


@pytest.mark.parametrize("strategy", ["splitnn-buffer", "vafl"])
def test_an_interrupted_split_network_resumes_to_the_same_result(
    strategy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["train", "--quiet", "--strategy", strategy, "--epochs", "6", "--seeds", "2", "--faults", "guest:0.2:0.5"]
    assert main([*given, "--out", "whole"]) == 0
    advance = EndToEnd.advance

    def interrupted(self: EndToEnd) -> None:
        advance(self)
        if self.done == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(EndToEnd, "advance", interrupted)
        assert main([*given, "--out", "r"]) == 130
    assert "interrupted after 3 of 6 epochs" in capsys.readouterr().err
    assert main(["train", "--quiet", "--resume", "--out", "r"]) == 0
    assert learned(Path("r")) == learned(Path("whole"))


def test_a_second_interrupt_stops_at_once_and_leaves_a_run_to_resume(process: Start, tmp_path: Path) -> None:
    run = process("train", *LONG, "--batch", "2", "--out", tmp_path / "r")  # an epoch of seconds
    while not (tmp_path / "r" / "config.json").exists():
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    time.sleep(0.3)  # two signals at once would count as one
    assert run.poll() is None, "the first lets the epoch end"
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode == 130
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["config.json"]


def test_an_interrupt_before_training_leaves_nothing(process: Start, tmp_path: Path) -> None:
    run = process("train", "--out", tmp_path / "r")
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=30)
    assert run.returncode in (-signal.SIGTERM, 143)
    assert not (tmp_path / "r").exists()


def test_a_resumed_run_computes_with_as_many_threads_as_it_began_with(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another number adds sums up in another order: large stacks would end with another result."""
    config = json.loads((begun / "config.json").read_text())
    write_json(begun / "config.json", {**config, "threads": 3})
    used, advance, before = [], Dvfl.advance, torch.get_num_threads()

    def noting(self: Dvfl) -> None:
        used.append(torch.get_num_threads())
        advance(self)

    monkeypatch.setattr(Dvfl, "advance", noting)
    try:
        assert main(["train", "--quiet", "--resume", "--out", str(begun)]) == 0
    finally:
        torch.set_num_threads(before)
    assert config["threads"] == before and set(used) == {3}


def test_resuming_a_finished_run_prints_its_result_again(
    short: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *short, "--out", "r"]) == 0
    printed = capsys.readouterr().out
    before = sha256(Path("r/result.json"))
    assert main(["train", "--resume", "--out", "r"]) == 0
    captured = capsys.readouterr()
    assert captured.out == printed and "finished before" in captured.err
    assert sha256(Path("r/result.json")) == before


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (("--hosts", "2"), "hosts is 2 here and 4 in"),
        (("--seeds", "2"), "seeds is 2 here and 1 in"),
        (("--faults", "host:0.1:0.1"), "faults is host:0.1:0.1 here and none in"),
        (("--dataset", "wine"), "dataset is wine here and digits in"),
        (("--preset", "paper"), "preset is paper here and tuned in"),
        (("--guests", "2"), "guests is 2 here and not set in"),
        (("--registers", "row"), "registers is row here and batch in"),
        (("--partial", "2"), "partial is 2 here and 0 in"),
        (("--absent",), "--absent is given here, and"),
    ],
)
def test_resuming_with_another_setting_names_it(
    changed: tuple[str, ...], named: str, begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--resume", "--out", str(begun), *changed]) == 2
    assert named in capsys.readouterr().err


def test_resuming_with_the_same_options_is_fine(begun: Path, short: tuple[str, ...]) -> None:
    assert main(["train", *short, "--dataset", "digits", "--hosts", "4", "--resume", "--out", str(begun)]) == 0


@pytest.mark.parametrize("strategy", ["splitnn-skip", "fedonce"])
def test_resuming_with_a_number_of_hosts_that_has_no_effect_is_fine(strategy: str) -> None:
    few = ["--epochs", "1"] if strategy == "splitnn-skip" else ["--guest-epochs", "1", "--owner-epochs", "1"]
    given = ["train", "--quiet", "--strategy", strategy, *few, "--hosts", "4", "--out", "r"]
    assert main(given) == 0
    Path("r/result.json").unlink()
    assert main([*given, "--resume"]) == 0


def test_a_run_with_recorded_outages_resumes_from_another_folder(
    outages: Path, short: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", *short, "--faults", f"recorded:{outages.name}", "--out", "r"]) == 0
    run = Path("r").absolute()
    (run / "result.json").unlink()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert main(["train", "--quiet", "--resume", "--out", str(run)]) == 0


def test_resuming_with_other_data_is_refused(
    tables: dict[str, Path], short: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--table", str(tables["bank"]), "--labels", str(tables["labels"]), "--id", "id"]
    assert main(["train", *short, *given, "--out", "r"]) == 0
    Path("r/result.json").unlink()  # as if it had not come to its end
    pd.read_csv(tables["bank"]).assign(x=1.5, y=range(120)).to_csv(tables["bank"], index=False)
    capsys.readouterr()
    assert main(["train", "--resume", "--out", "r"]) == 2
    assert "data: labels is not what it was" in capsys.readouterr().err


def test_a_broken_checkpoint_is_named(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (begun / "checkpoint.safetensors").write_bytes(b"\x00" * 100)
    assert main(["train", "--quiet", "--resume", "--out", str(begun)]) == 2
    assert "checkpoint.safetensors: cannot be read" in capsys.readouterr().err


@pytest.fixture
def begun(short: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> Path:
    """A run folder that has not come to its end."""
    assert main(["train", *short, "--out", "r"]) == 0
    Path("r/result.json").unlink()
    capsys.readouterr()
    return Path("r")
