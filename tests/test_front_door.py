"""What users import from `dvfl` itself."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dvfl
from dvfl.cli import main
from dvfl.errors import UserError

FEW = {"guest_epochs": 2, "host_epochs": 2, "owner_epochs": 5}


def test_everything_that_is_exported_is_there_and_explained() -> None:
    for name in dvfl.__all__:
        thing = getattr(dvfl, name)
        assert name == "__version__" or inspect.getdoc(thing)
    assert set(dvfl.__all__) <= set(dir(dvfl))
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        dvfl.simulat  # noqa: B018


def test_the_import_alone_does_not_wait_for_pytorch() -> None:
    code = "import sys, dvfl; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_simulate_gives_figures_losses_and_predictions_of_every_seed() -> None:
    run = dvfl.simulate("digits", seeds=2, hosts=2, faults=["guest:0.3:0.5"], **FEW)
    assert run.accuracy is not None and len(run.accuracy) == 2 and run.metrics == {"accuracy": run.accuracy}
    predicted = run.predict()
    data = run.simulation.data
    right = (predicted == np.array(data.classes)[data.y_test]).mean(1) * 100
    assert right == pytest.approx(run.accuracy, abs=1e-4)
    assert run.result["hosts"] == 2 and len(run.history["owner"][0]) == 5


def test_simulate_trains_what_the_command_line_trains(tmp_path: Path) -> None:
    run = dvfl.simulate("digits", strategy="vafl", preset="paper", epochs=3)
    words = ["--strategy", "vafl", "--preset", "paper", "--epochs", "3", "--out", str(tmp_path / "run")]
    assert main(["train", "--quiet", *words]) == 0
    loaded = dvfl.load(tmp_path / "run")
    assert isinstance(loaded, dvfl.runs.simulate.Figures)
    assert loaded.accuracy == run.accuracy and loaded.history == run.history


def test_a_regression_has_r2_and_numbers() -> None:
    run = dvfl.simulate("diabetes", **FEW)
    assert run.accuracy is None and list(run.metrics) == ["r2"] and run.predict().dtype.kind == "f"


def test_a_callback_is_told_of_every_epoch() -> None:
    class Count(dvfl.Callback):
        epochs = 0

        def on_epoch_end(self, run: object, phase: str, epoch: int, values: object) -> None:
            self.epochs += 1

    count = Count()
    run = dvfl.simulate("digits", callbacks=[count], **FEW)
    assert count.epochs == run.simulation.done


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"host": 2}, "strategy dvfl has no setting 'host'.*hosts"),
        ({"strategy": "vafl", "period": 2}, "strategy vafl has no setting 'period'"),
        ({"strategy": "dvfl-hostless", "hosts": 2}, "hosts is 0 in dvfl-hostless"),
        ({"strategy": "vafll"}, "no strategy is called 'vafll'.*vafl"),
        ({"seeds": 0}, "seeds 0: at least 1"),
        ({"preset": "papper"}, "unknown preset 'papper'.*paper"),
        ({"device": "tpu"}, "device 'tpu': it must be auto, cpu or cuda"),
        ({"faults": ["guest:0.3"]}, "guest:R_d:R_u"),
    ],
)
def test_what_cannot_be_simulated_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        dvfl.simulate("digits", **wrong)  # type: ignore[arg-type]


def test_what_is_no_data_is_refused() -> None:
    with pytest.raises(UserError, match="data is a list; give a data set's name or a VerticalData"):
        dvfl.simulate([[1.0]])  # type: ignore[arg-type]


def test_an_estimator_is_loaded_as_what_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 6)), rng.integers(0, 2, 60)
    model = dvfl.DVFLClassifier(guests=2, guest_epochs=1, host_epochs=1, owner_epochs=2, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    loaded = dvfl.load(tmp_path / "model")
    assert isinstance(loaded, dvfl.DVFLClassifier) and (loaded.predict(X) == model.predict(X)).all()


def test_a_folder_that_holds_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"neither result\.json of a finished run nor manifest\.json"):
        dvfl.load(tmp_path)
