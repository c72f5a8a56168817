"""Experiments as tables, sentences and figures, with the paper's numbers in the place of ours."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dvfl.reproduce.outcome.experiment import Experiment
from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.pages.grid import contrasted, contrasted_pools, grid_findings
from dvfl.reproduce.pages.pages import markdown, page
from dvfl.reproduce.pages.presentation import presentation
from dvfl.reproduce.paper import EXPERIMENTS

GRIDS = [experiment for experiment in EXPERIMENTS.values() if experiment.grid is not None]


def made_up(experiment: Experiment, preset: str = "paper", seeds: int = 10, rows: int | None = None) -> Results:
    """The paper's means where it has some, with a spread of a tenth of a point."""
    rng = np.random.default_rng(4)
    cells = []
    for cell in experiment.cells(preset):
        mean = cell.paper_mean or 90.0
        accuracy: list[float | None] = (mean + 0.1 * rng.standard_normal(seeds)).round(2).tolist()
        cells.append(
            Cell(
                cell.strategy,
                cell.source.dataset,
                cell.condition,
                list(range(seeds)),
                accuracy,
                "ok",
                cell.paper_mean,
                cell.paper_two_sigma,
                "dvfl reproduce",
                untouched=cell.untouched,
                fields={"bytes_sent_per_guest": 1536 * 10**6, **cell.fields},
            )
        )
    versions = {"dvfl": "0.1.0"}
    return Results(experiment.name, preset, {"cpu": "two cores"}, versions, "dvfl reproduce", 12.0, cells, rows)


@pytest.mark.parametrize("experiment", GRIDS, ids=lambda experiment: experiment.name)
def test_every_cell_of_an_experiment_is_in_its_table(experiment: Experiment) -> None:
    results = made_up(experiment)
    first = presentation(results).tables[0]
    shown = [cell.text for _, row in first.rows for cell in row if cell.text]
    assert sorted(shown) == sorted("=" if cell.untouched else f"{cell.mean:.2f}" for cell in results.cells)


@pytest.mark.parametrize("experiment", GRIDS, ids=lambda experiment: experiment.name)
def test_every_contrast_finds_its_cells(experiment: Experiment) -> None:
    found = {one.label for preset in ("paper", "tuned") for one in contrasted(experiment, made_up(experiment, preset))}
    assert found == {contrast.label for contrast in experiment.contrasts}


@pytest.mark.parametrize("experiment", GRIDS, ids=lambda experiment: experiment.name)
def test_figures_are_whole_and_show_ours_and_the_papers(experiment: Experiment) -> None:
    figure = presentation(made_up(experiment)).figure
    ElementTree.fromstring(figure)
    published = any(cell.paper_mean is not None for cell in experiment.cells("paper"))
    assert "ours, with 2 sigma" in figure and ("the paper's" in figure) == published


@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_conditions_tell_cells_apart(preset: str) -> None:
    for experiment in EXPERIMENTS.values():
        cells = experiment.cells(preset)
        keys = {(cell.strategy, cell.source.dataset, *sorted(cell.condition.items())) for cell in cells}
        assert len(keys) == len(cells)


def test_a_clear_difference_is_ahead_and_a_reverse_one_behind() -> None:
    redundancy = EXPERIMENTS["redundancy"]
    results = made_up(redundancy)
    for best, verdict in ((1, "behind"), (4, "ahead")):
        for cell in results.cells:
            mean = 99.0 if cell.condition["hosts"] == best else 97.0
            cell.accuracy[:] = [mean + 0.01 * seed for seed in cell.seeds]
        assert {one.judgement.verdict for one in contrasted(redundancy, results)} == {verdict}
        (together,) = contrasted_pools(redundancy, results)
        assert together.label == "4 hosts against 1, pooled" and together.judgement.verdict == verdict
    said = grid_findings(redundancy, results)["What the comparisons say"]
    assert said[1].startswith("4 hosts against 1, R_d 0.3: +2.00 (95 % interval")


def test_fewer_rows_are_not_measured_by_the_papers_figures() -> None:
    width = EXPERIMENTS["width"]
    findings = grid_findings(width, made_up(width, rows=512))
    assert findings["Where ours differs from the paper's figures"] == [
        "At most 512 training rows were used: the paper's figures are no measure for these."
    ]


def test_a_report_of_all_experiments_has_a_section_and_a_link_for_each() -> None:
    html = page([made_up(experiment) for experiment in GRIDS])
    assert re.findall(r'<section id="(\w+)"', html) == [experiment.name for experiment in GRIDS]
    assert html.count("<nav") == 1 and "http" not in re.sub(r'xmlns(:\w+)?="[^"]+"', "", html)


def test_markdown_of_communication_has_both_of_the_papers_figures_and_the_bytes() -> None:
    text = markdown(made_up(EXPERIMENTS["communication"]))
    assert "paper 97.80" in text and "97.30" in text and "1.536 GB" in text
