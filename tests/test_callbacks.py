"""What callbacks are told of a run, and what TensorBoard makes of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dvfl import DVFLClassifier
from dvfl.callbacks import Callback, TensorBoard
from dvfl.cli import main
from dvfl.errors import UserError

QUICK = {"guest_epochs": 2, "host_epochs": 3, "owner_epochs": 2, "hosts": 2}


class Diary(Callback):
    """Writes down all it is told."""

    def __init__(self) -> None:
        self.pages: list[Any] = []

    def on_run_begin(self, run: Any) -> None:
        self.pages.append(("begin", run.done))

    def on_epoch_end(self, run: Any, phase: str, epoch: int, values: Any) -> None:
        self.pages.append((phase, epoch, dict(values)))

    def on_run_end(self, run: Any) -> None:
        self.pages.append(("end", run.finished))


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(120, 6))
    return x, np.where(x[:, 1] + x[:, 4] > 0, "yes", "no")


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard finds in a folder."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="dvfl[tensorboard] is not installed"
    )
    found = accumulator.EventAccumulator(str(folder)).Reload()
    return {tag: [(one.step, one.value) for one in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_every_epoch_is_told_with_the_losses_of_whoever_learned(table: tuple[np.ndarray, np.ndarray]) -> None:
    diary = Diary()
    model = DVFLClassifier(guests=2, callbacks=[diary], **QUICK).fit(*table)
    assert diary.pages[0] == ("begin", 0) and diary.pages[-1] == ("end", True)
    told = diary.pages[1:-1]
    assert [(phase, epoch) for phase, epoch, _ in told] == [
        ("guests and hosts", 1),
        ("guests and hosts", 2),
        ("hosts, replay", 3),
        ("owner", 4),
        ("owner", 5),
    ]
    assert set(told[0][2]) == {"loss/guest-1", "loss/guest-2", "loss/host-1", "loss/host-2"}
    assert set(told[2][2]) == {"loss/host-1", "loss/host-2"}
    assert [values["loss/owner"][0] for _, _, values in told[3:]] == pytest.approx(model.history_["owner"].tolist())
    guests = [[values[f"loss/guest-{number}"][0] for number in (1, 2)] for _, _, values in told[:2]]
    assert guests == pytest.approx(model.history_["guests"])


def test_held_out_rows_have_a_score(table: tuple[np.ndarray, np.ndarray]) -> None:
    diary = Diary()
    DVFLClassifier(callbacks=[diary], early_stopping=True, **QUICK).fit(*table)
    owner = [page[2] for page in diary.pages if page[0] == "owner"]
    assert all(0 <= values["score/held_out"][0] <= 1 for values in owner)


class Careless(Callback):
    def on_epoch_end(self, run: Any, phase: str, epoch: int, values: Any) -> None:
        if epoch == 3:
            raise LookupError("my own defect")


def test_an_error_of_a_callback_ends_the_run_as_itself(table: tuple[np.ndarray, np.ndarray]) -> None:
    diary = Diary()
    with pytest.raises(LookupError, match="my own defect"):
        DVFLClassifier(callbacks=[diary, Careless()], **QUICK).fit(*table)
    assert [page[1] for page in diary.pages[1:-1]] == [1, 2, 3]
    assert diary.pages[-1] == ("end", False)


def test_an_estimator_with_callbacks_is_cloned_and_saved(table: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    model = clone(DVFLClassifier(callbacks=[Diary()], **QUICK)).fit(*table)
    assert len(model.callbacks[0].pages) == 7
    model.save(tmp_path / "model")
    assert DVFLClassifier.load(tmp_path / "model").callbacks is None


def test_tensorboard_finds_every_loss_of_every_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("tensorboard", reason="dvfl[tensorboard] is not installed")
    short = ["--guest-epochs", "2", "--host-epochs", "3", "--owner-epochs", "2", "--seeds", "2", "--quiet"]
    assert main(["train", *short, "--tensorboard", "curves", "--out", "run"]) == 0
    history = json.loads(Path("run", "history.json").read_text())
    assert sorted(path.name for path in Path("curves").iterdir()) == ["seed-0", "seed-1"]
    for seed in (0, 1):
        found = curves(Path("curves", f"seed-{seed}"))
        assert [step for step, _ in found["loss/owner"]] == [4, 5]
        assert [value for _, value in found["loss/owner"]] == pytest.approx(history["owner"][seed])
        for guest, losses in history["guests"].items():
            assert [value for _, value in found[f"loss/{guest}"]] == pytest.approx(losses[seed])
        for host, losses in history["hosts"].items():
            assert [value for _, value in found[f"loss/{host}"]] == pytest.approx(losses[seed])


def test_tensorboard_works_in_an_estimator_again_and_again(
    table: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    pytest.importorskip("tensorboard", reason="dvfl[tensorboard] is not installed")
    model = DVFLClassifier(callbacks=[TensorBoard(tmp_path)], **QUICK)
    for _ in range(2):
        clone(model).fit(*table)
    assert {step for step, _ in curves(tmp_path / "seed-0")["loss/owner"]} == {4, 5}


def test_without_the_extra_its_name_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.callbacks.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"dvfl\[tensorboard\]"):
        TensorBoard(tmp_path)


def test_a_folder_that_cannot_be_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert main(["train", "--tensorboard", "file/curves", "--out", "run"]) == 2
    assert "--tensorboard file/curves cannot be made" in capsys.readouterr().err
    assert not Path("run").exists()
