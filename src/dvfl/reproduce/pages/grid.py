"""An experiment's cells as tables and sentences: ours, the paper's beside them, and which cells differ from which."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from dvfl.reproduce.outcome.experiment import Contrast, Experiment, Grid
from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.outcome.statistics import (
    Comparison,
    Judgement,
    compare,
    compare_differences,
    differences,
    judge,
    pooled,
)
from dvfl.reproduce.pages.text_tables import (
    APART,
    MARKS,
    NOTHING,
    TESTS,
    UNTOUCHED,
    UNTOUCHED_NOTE,
    Shown,
    Table,
    judgement_fields,
    listed,
    number,
    p_value,
    shown_judgement,
    signed,
)

STATISTICS = (
    "A cell is the mean over seeds and twice their sample standard deviation, without values beyond 1.5 interquartile"
    f" ranges outside the quartiles, as in the paper's Table 1. {TESTS} Pooled comparisons have each seed's mean over"
    " several others, and are adjusted for their own number. Repeated splits share rows, so tests over them are"
    " somewhat too sure of themselves."
)


@dataclass(frozen=True)
class Found:
    """What came of a contrast, or of several pooled."""

    label: str
    judgement: Judgement
    contrast: Contrast | None = None  # None: pooled


def contrasted(experiment: Experiment, results: Results) -> list[Found]:
    """The experiment's contrasts, as far as at least two seeds have both cells."""
    found: dict[str, Comparison] = {}
    same: dict[str, Hashable] = {}
    for contrast, one, other in _pairs(experiment, results):
        comparison = compare(one.by_seed, other.by_seed)
        if comparison is not None:
            found[contrast.label] = comparison
            same[contrast.label] = (*one.accuracy, "against", *other.accuracy)
    judgements = judge(found, same)
    return [
        Found(contrast.label, judgements[contrast.label], contrast)
        for contrast in experiment.contrasts
        if contrast.label in judgements
    ]


def contrasted_pools(experiment: Experiment, results: Results) -> list[Found]:
    """Contrasts that ask the same under several conditions, each seed's mean difference over them as one value."""
    pools: dict[str, list[dict[int, float]]] = {}
    for contrast, one, other in _pairs(experiment, results):
        if contrast.pool is not None:
            pools.setdefault(contrast.pool, []).append(differences(one.by_seed, other.by_seed))
    made = {f"{name}, pooled": compare_differences([*pooled(each).values()]) for name, each in pools.items()}
    known = {name: one for name, one in made.items() if one is not None}
    return [Found(name, one) for name, one in judge(known, {name: name for name in known}).items()]


def plain_contrasts(experiment: Experiment, results: Results) -> list[dict[str, Any]]:
    """Every comparison as the results file has it."""
    return [
        {
            "label": found.label,
            "family": "pooled" if found.contrast is None else "contrasts",
            **({} if found.contrast is None else _sides(found.contrast)),
            **judgement_fields(found.judgement),
        }
        for found in (*contrasted(experiment, results), *contrasted_pools(experiment, results))
    ]


def grid_tables(experiment: Experiment, grid: Grid, results: Results) -> list[Table]:
    """Ours, ours minus the paper's, what else the experiment shows, and its contrasts."""
    note = f"{_OURS_NOTE} {UNTOUCHED_NOTE}" if any(cell.untouched for cell in results.cells) else _OURS_NOTE
    tables = [_table(grid, results, "Ours", note, _ours)]
    if any(cell.paper_mean is not None for cell in results.cells):
        note = f"Difference of the means in points, and the paper's mean. Bold: more than {APART:g} apart."
        tables.append(_table(grid, results, "Ours minus the paper's", note, _minus_paper))
    for title, note, show in grid.also:
        tables.append(_table(grid, results, title, note, _told(show)))
    found = [*contrasted(experiment, results), *contrasted_pools(experiment, results)]
    if found:
        heads = [("", name) for name in ("difference", "t-test p", "ranks p", "adjusted p", "pairs")]
        rows = [(one.label, _contrast_cells(one)) for one in found]
        note = (
            f"Mean difference in points over all seeds, and its 95 % interval. {MARKS['ahead']} ahead,"
            f" {MARKS['behind']} behind, {MARKS['level']} level."
        )
        tables.append(Table("Comparisons", note, heads, rows, corner="first against second"))
    return tables


def grid_findings(experiment: Experiment, results: Results) -> dict[str, list[str]]:
    """Sentences made from the numbers, by heading."""
    said = {
        "What the comparisons say": [
            _sentence(one) for one in (*contrasted(experiment, results), *contrasted_pools(experiment, results))
        ],
        "Where ours differs from the paper's figures": _from_the_paper(experiment, results),
        "What to know": experiment.remarks(results),
    }
    return {heading: sentences for heading, sentences in said.items() if sentences}


def laid_out(grid: Grid, results: Results) -> tuple[list[str], list[str], dict[tuple[str, str], Cell]]:
    """Names of rows and columns in the order they come, and the cells by both."""
    cells = {(grid.row(cell), grid.column(cell)): cell for cell in results.cells}
    rows, columns = (list(dict.fromkeys(key[side] for key in cells)) for side in (0, 1))
    return rows, columns, cells


_OURS_NOTE = "Test accuracy in percent, mean ± 2 sigma. Bold: the best of a column."


def _pairs(experiment: Experiment, results: Results) -> list[tuple[Contrast, Cell, Cell]]:
    """The contrasts whose cells are both there."""
    made = []
    for contrast in experiment.contrasts:
        one, other = (_find(results, side, contrast.dataset) for side in (contrast.one, contrast.other))
        if one is not None and other is not None:
            made.append((contrast, one, other))
    return made


def _sides(contrast: Contrast) -> dict[str, Any]:
    names = ("strategy", "condition")
    both = {
        "first": dict(zip(names, contrast.one, strict=True)),
        "second": dict(zip(names, contrast.other, strict=True)),
    }
    return both if contrast.dataset is None else {**both, "dataset": contrast.dataset}


def _find(results: Results, side: tuple[str, dict[str, object]], dataset: str | None) -> Cell | None:
    strategy, condition = side
    found = (
        cell
        for cell in results.cells
        if cell.strategy == strategy and cell.condition == condition and dataset in (None, cell.dataset)
    )
    return next(found, None)


def _table(grid: Grid, results: Results, title: str, note: str, show: Callable[[Cell, list[Cell]], Shown]) -> Table:
    """`show` is told a cell and all cells of its column."""
    rows, columns, cells = laid_out(grid, results)
    made = []
    for row in rows:
        shown = []
        for column in columns:
            peers = [other for (_, name), other in cells.items() if name == column]
            shown.append(show(cells[row, column], peers) if (row, column) in cells else Shown(""))
        made.append((row, shown))
    return Table(title, note, [(grid.axis, column) for column in columns], made, corner=grid.corner)


def _told(show: Callable[[Cell], str]) -> Callable[[Cell, list[Cell]], Shown]:
    return lambda cell, peers: Shown(show(cell))


def _ours(cell: Cell, peers: list[Cell]) -> Shown:
    if cell.untouched:
        return Shown(UNTOUCHED)
    if cell.mean is None or cell.two_sigma is None:
        return Shown(NOTHING)
    best = max(peer.mean for peer in peers if peer.mean is not None)
    text = number(cell.mean)
    return Shown(text, f"± {number(cell.two_sigma)}", strong=len(peers) > 1 and text == number(best))


def _minus_paper(cell: Cell, peers: list[Cell]) -> Shown:
    if cell.untouched:
        return Shown(UNTOUCHED)
    if cell.mean is None or cell.paper_mean is None:
        return Shown("")
    difference = cell.mean - cell.paper_mean
    return Shown(signed(difference), f"paper {number(cell.paper_mean)}", strong=abs(difference) > APART)


def _contrast_cells(found: Found) -> list[Shown]:
    one = found.judgement.comparison
    return [
        shown_judgement(found.judgement),
        Shown(p_value(one.t_p)),
        Shown(p_value(one.rank_p)),
        Shown(p_value(found.judgement.adjusted_p)),
        Shown(str(one.n)),
    ]


def _sentence(found: Found) -> str:
    one = found.judgement.comparison
    said = f"{found.label}: {signed(one.difference)} (95 % interval {number(one.low)} to {number(one.high)}"
    if one.p is None:
        return f"{said}; {one.n} seeds, too few for a test)."
    return f"{said}; adjusted p {p_value(found.judgement.adjusted_p)}), {found.judgement.verdict}."


def _from_the_paper(experiment: Experiment, results: Results) -> list[str]:
    grid = experiment.grid
    published = [
        cell for cell in results.cells if cell.mean is not None and cell.paper_mean is not None and not cell.untouched
    ]
    if grid is None or not published:
        return []
    if results.rows is not None:
        return [f"At most {results.rows:,} training rows were used: the paper's figures are no measure for these."]
    sentences = []
    if results.preset != "paper":
        sentences.append(f"The preset {results.preset} is not the paper's settings, so differences are to be expected.")
    apart = []
    for cell in published:
        difference = (cell.mean or 0) - (cell.paper_mean or 0)
        if abs(difference) > APART:
            apart.append(f"{grid.row(cell)} at {grid.column(cell)} ({signed(difference)})")
    within = f"within {APART:g} of the paper's"
    if not apart:
        return [*sentences, f"The means of all {len(published)} cells that both have are {within}."]
    rest = f" The other {len(published) - len(apart)} are {within}." if len(apart) < len(published) else ""
    return [*sentences, f"More than {APART:g} apart: {listed(apart)}.{rest}"]
