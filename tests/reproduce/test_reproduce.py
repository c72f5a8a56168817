"""`dvfl reproduce table1` from order to pages, on few rows of MNIST; stopped and continued."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dvfl.cli import main
from dvfl.data.split.vertical import fewer_rows
from dvfl.errors import UserError
from dvfl.reproduce.blocks import Training
from dvfl.reproduce.paper import EXPERIMENTS, table1
from dvfl.reproduce.paper.published import TABLE1
from dvfl.reproduce.reproduce import Order, data_note, reproduce, trainings
from dvfl.simulation.simulation import Simulation

from dvfl.data import load  # isort: skip

ORDER = Order("table1", "paper", seeds=1, rows=64, device="cpu")


class Noting:
    """Writes down the blocks that are begun, and stops before one of them."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.begun: list[str] = []
        self.seen: list[int] = []  # how many blocks there were to be
        self._stop_at = stop_at

    def block(self, block: tuple[Training, ...], number: int, count: int) -> None:
        self.seen.append(count)
        if number == self._stop_at:
            raise KeyboardInterrupt
        self.begun.append(block[0].strategy)

    def epoch(self, simulation: Simulation) -> None: ...


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """A Table 1 of three strategies and four columns, which takes seconds."""
    whole = EXPERIMENTS["table1"]
    cells = [
        cell
        for cell in whole.cells("paper")
        if cell.strategy in ("dvfl", "splitnn-wait", "vfb2") and cell.condition["kind"] in ("none", "guest")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXPERIMENTS, "table1", replace(whole, cells=lambda preset: cells))  # type: ignore[arg-type]
        yield


@pytest.fixture(scope="module")
def mnist() -> None:
    try:
        load("mnist")
    except UserError:
        pytest.skip("MNIST is not on this machine")


@pytest.fixture(scope="module")
def made(small: None, mnist: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that was stopped after its first blocks and continued."""
    out = tmp_path_factory.mktemp("reproduce")
    first = Noting(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        reproduce(ORDER, out, first)
    assert first.begun == ["dvfl", "splitnn-wait"] and not (out / "table1.json").exists()
    second = Noting()
    reproduce(ORDER, out, second)
    assert second.begun == ["splitnn-wait"] * 3 + ["vfb2"]
    return out


def test_the_declaration_has_the_papers_rows_and_ours_ten_columns_and_every_seed() -> None:
    cells = table1.EXPERIMENT.cells("paper")
    papers = [cell for cell in cells if cell.strategy in TABLE1]
    made = [training.key for cell in papers for training in trainings(cell, 10)]
    assert len(papers) == 80 and len(made) == len(set(made)) == 800
    assert {cell.strategy for cell in cells} == set(table1.ROWS) and len(cells) == 120
    assert len(table1.EXPERIMENT.cells("tuned")) == 110  # whose replay is in order anyway


def test_what_faults_cannot_touch_is_trained_once() -> None:
    cells = [cell for cell in table1.EXPERIMENT.cells("paper") if cell.strategy == "dvfl-hostless"]
    made = {training.key for cell in cells for training in trainings(cell, 2)}
    assert sum(cell.untouched for cell in cells) == 6 and len(made) == 4 * 2


def test_the_results_file_keeps_the_contract(made: Path) -> None:
    results = json.loads((made / "table1.json").read_text())
    assert {"experiment", "preset", "machine", "versions", "command", "seconds", "cells"} <= set(results)
    assert len(results["cells"]) == 12
    keys = {"strategy", "dataset", "condition", "seeds", "accuracy", "status"}
    keys |= {"mean", "two_sigma", "paper_mean", "paper_two_sigma"}
    assert all(keys <= set(cell) for cell in results["cells"])
    assert results["cells"][0]["condition"] == {"kind": "none", "down": None, "up": None}
    assert results["cells"][3]["condition"] == {"kind": "guest", "down": 0.3, "up": 0.1}
    assert results["cells"][0]["paper_mean"] == 97.80


def test_what_waits_is_stalled_under_faults_and_has_no_accuracy(made: Path) -> None:
    cells = json.loads((made / "table1.json").read_text())["cells"]
    waiting = [cell for cell in cells if cell["strategy"] == "splitnn-wait"]
    assert waiting[0]["status"] == "ok"
    assert all(cell["status"].startswith("stalled at round ") for cell in waiting[1:])
    assert all(cell["accuracy"] == [None] and cell["mean"] is None for cell in waiting[1:])


def test_pages_and_picture_are_there(made: Path) -> None:
    assert "splitnn-wait" in (made / "table1.md").read_text()
    assert (made / "table1.svg").read_text().lstrip().startswith(("<?xml", "<svg"))
    assert "Table 1" in (made / "report.html").read_text()


def test_a_finished_experiment_trains_nothing_again(made: Path) -> None:
    again = Noting()
    reproduce(ORDER, made, again)
    assert again.begun == []


@pytest.mark.parametrize(("change", "message"), [({"preset": "tuned"}, "preset"), ({"rows": 65}, "rows")])
def test_another_order_in_the_same_folder_is_refused(made: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        reproduce(Order(**{**vars(ORDER), **change}), made, Noting())  # type: ignore[arg-type]


def test_a_missing_block_alone_is_made_again(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "copy")
    next((tmp_path / "copy" / "blocks").glob("vfb2-*.json")).unlink()
    again = Noting()
    reproduce(ORDER, tmp_path / "copy", again)
    assert again.begun == ["vfb2"]


def test_trainings_that_two_experiments_share_are_made_once(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "copy")
    noted = Noting(stop_at=1)
    with pytest.raises(KeyboardInterrupt):
        reproduce(replace(ORDER, experiment="communication"), tmp_path / "copy", noted)
    assert noted.seen == [4]  # K = 1 is a cell of Table 1


def test_a_folder_of_an_older_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "blocks" / "table1").mkdir(parents=True)
    with pytest.raises(UserError, match="blocks of another version of dvfl; another --out keeps both"):
        reproduce(ORDER, tmp_path, Noting())


def test_what_is_to_be_known_of_the_data_has_their_names_where_they_are_several() -> None:
    digits = load("digits")
    one, other = replace(digits, note="rounded"), replace(digits, name="wine", note="mixed")
    assert data_note([one, one]) == "rounded"
    assert data_note([one, other, digits]) == "digits: rounded. wine: mixed"


def test_fewer_rows_are_drawn_once_and_test_rows_stay() -> None:
    data = load("digits")
    less = fewer_rows(data, 100)
    assert less.rows == 100 and len(less.y_test) == len(data.y_test)
    assert (fewer_rows(data, 100).y_train == less.y_train).all()
    assert fewer_rows(data, None) is data


@pytest.mark.parametrize("rows", ["3", "70000"])
def test_rows_that_are_not_there_are_refused(
    rows: str, mnist: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "table1", "--rows", rows, "--out", str(tmp_path)]) == 2
    assert "from 64 to 60000" in capsys.readouterr().err


def test_an_unknown_experiment_is_refused_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "table2", "--out", str(tmp_path / "new")]) == 2
    assert "did you mean 'table1'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
