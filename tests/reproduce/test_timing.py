"""Times of parties' steps, measured and shown."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows
from dvfl.errors import UserError
from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.pages.pages import markdown
from dvfl.reproduce.pages.presentation import presentation
from dvfl.reproduce.paper import EXPERIMENTS
from dvfl.reproduce.paper.published import TIME
from dvfl.reproduce.paper.time import OWN_PROCESS, PROCESS
from dvfl.reproduce.reproduce import Order, reproduce
from dvfl.reproduce.timing import times


def published() -> Results:
    """The paper's seconds in the place of ours."""
    cells = [
        Cell(
            cell.strategy,
            "mnist",
            cell.condition,
            *([], [], "ok", None, None, "dvfl reproduce time"),
            fields={"seconds": cell.fields["paper_seconds"], **cell.fields},
        )
        for cell in EXPERIMENTS["time"].cells("paper")
    ]
    return Results("time", "paper", {"cpu": "two cores"}, {"dvfl": "0.1.0"}, "dvfl reproduce time", 3.0, cells)


def test_every_quantity_is_measured_and_a_process_lives_for_all_its_epochs() -> None:
    data = fewer_rows(load("digits"), 700)
    seconds = times(data, "paper", "cpu")
    names = {name: [*one, OWN_PROCESS] for name, one in TIME.items()}
    assert {name: list(one) for name, one in seconds.items()} == names
    split = seconds["splitnn-wait"]
    parts = sum(split[f"guest {part}"] or 0 for part in ("forward", "waiting", "backward"))
    assert split[PROCESS] == pytest.approx(20 * parts)  # the paper's line has as many for every strategy
    assert split[OWN_PROCESS] == pytest.approx(60 * parts)
    assert all((one["guest forward"] or 0) > 0 and (one[PROCESS] or 0) > 0 for one in seconds.values())
    assert seconds["dvfl"]["guest waiting"] == 0 and split["owner forward"] is None


def test_the_papers_processes_are_twenty_times_their_parts() -> None:
    for one in TIME.values():
        parts = sum(one[f"guest {part}"] or 0 for part in ("forward", "waiting", "backward"))
        assert one[PROCESS] == pytest.approx(20 * parts, rel=0.01)


def test_the_pages_give_a_guests_life_as_part_of_splitnns() -> None:
    text = markdown(published())
    assert "| ours, 20 epochs each | 0.70 | 3.81 | 1.00 |" in text
    assert "A guest of dvfl is alive for 55.88 s over 20 epochs, one of SplitNN for 80.22 s." in text
    ElementTree.fromstring(presentation(published()).figure)


def test_times_that_are_there_are_not_measured_again(tmp_path: Path) -> None:
    order = Order("time", "paper", None, 700, "cpu")
    try:
        load("mnist")
    except UserError:
        pytest.skip("MNIST is not on this machine")
    (tmp_path / "time.json").write_text(json.dumps(published().to_dict()))
    (results,) = reproduce(order, tmp_path, None)  # type: ignore[arg-type]
    assert results.cells[0].fields["seconds"] == 2.144
    assert "Time per epoch and role" in (tmp_path / "report.html").read_text()
