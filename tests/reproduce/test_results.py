"""The results file of an experiment, and the paper's figures beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from dvfl.errors import UserError
from dvfl.files import write_json
from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.paper.published import TABLE1

NONE = {"kind": "none", "down": None, "up": None}
LOST = {"kind": "connection", "down": 0.3, "up": 0.1}


def cell(strategy: str = "dvfl", condition: dict[str, Any] = NONE, **changes: Any) -> Cell:
    values: dict[str, Any] = {
        "dataset": "mnist",
        "seeds": [0, 1, 2],
        "accuracy": [97.123456, 98.0, 98.5],
        "status": "ok",
        "paper_mean": 97.8,
        "paper_two_sigma": 0.12,
        "command": "dvfl train --dataset mnist",
    }
    return Cell(strategy, condition=condition, **{**values, **changes})


def results(*cells: Cell, **changes: Any) -> Results:
    versions, command = {"dvfl": "0.1.0"}, "dvfl reproduce table1"
    return Results("table1", "paper", {"cores": 2}, versions, command, 12.5, list(cells), **changes)


def stalled() -> Cell:
    nothing: dict[str, Any] = {"accuracy": [None] * 3, "paper_mean": None, "paper_two_sigma": None}
    return cell("splitnn-wait", LOST, status="stalled at round 3", **nothing)


def test_the_file_has_exactly_the_fields_of_the_contract() -> None:
    plain = results(cell()).to_dict()
    assert list(plain) == ["experiment", "preset", "machine", "versions", "command", "seconds", "rows", "cells"]
    fields = "strategy dataset condition seeds accuracy status mean two_sigma paper_mean paper_two_sigma command"
    assert list(plain["cells"][0]) == fields.split()


def test_repeated_requests_and_a_note_are_written_only_where_there_are_any() -> None:
    plain = results(cell(requests_repeated=0), note="ours").to_dict()
    assert plain["cells"][0]["requests_repeated"] == 0 and plain["note"] == "ours"


def test_accuracies_have_four_digits_and_the_statistics_are_theirs() -> None:
    plain = cell().to_dict()
    assert plain["accuracy"] == [97.1235, 98.0, 98.5]
    assert plain["mean"] == pytest.approx(97.8745, abs=1e-4)
    assert plain["two_sigma"] == pytest.approx(2 * 0.6969, abs=1e-3)


def test_what_was_written_is_read_back_and_writes_the_same(tmp_path: Path) -> None:
    before = results(cell(), stalled(), cell(requests_repeated=7), rows=2000, note="a note")
    write_json(tmp_path / "table1.json", before.to_dict())
    after = Results.from_dict(json.loads((tmp_path / "table1.json").read_text()))
    assert after.to_dict() == before.to_dict()
    assert (after.rows, after.note, after.cells[1]) == (2000, "a note", stalled())


def test_a_stalled_cell_has_no_statistics() -> None:
    plain = stalled().to_dict()
    assert (plain["mean"], plain["two_sigma"], plain["status"]) == (None, None, "stalled at round 3")


def test_a_cell_is_found_by_strategy_and_condition() -> None:
    both = results(cell(), cell("vafl", LOST))
    assert both.cell("vafl", {"up": 0.1, "down": 0.3, "kind": "connection"}) is both.cells[1]
    assert both.cell("vafl", NONE) is None


def test_a_file_without_a_field_is_refused_by_its_name() -> None:
    plain = results(cell()).to_dict()
    del plain["cells"][0]["status"]
    with pytest.raises(UserError, match="'status' is missing"):
        Results.from_dict(plain)


def test_the_papers_table_has_eight_strategies_and_ten_columns() -> None:
    assert len(TABLE1) == 8
    for row in TABLE1.values():
        assert len(row) == 10 and row["none", None] is not None
    assert [figure for row in TABLE1.values() for figure in row.values()].count(None) == 9


def test_the_papers_figures_stand_in_their_places() -> None:
    assert TABLE1["dvfl"]["none", None] == (97.80, 0.12)
    assert TABLE1["dvfl"]["host", 0.1] == (97.60, 0.33)
    assert TABLE1["splitnn-wait"]["guest", 1.0] is None
    assert TABLE1["splitnn-skip"]["connection", 0.1] == (77.21, 5.34)
    assert TABLE1["splitnn-buffer"]["guest", 0.1] == (91.78, 1.70)
    assert TABLE1["fedonce-zeros"]["guest", 0.5] == (97.45, 0.31)
    assert TABLE1["vafl"]["host", 1.0] == (97.17, 0.48)
    assert TABLE1["vfb2"]["host", 0.5] == (97.20, 0.61)
