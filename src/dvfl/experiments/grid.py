"""An experiment's cells as tables and sentences: ours, the paper's beside them, and which cells differ from which."""

from collections.abc import Callable
from dataclasses import dataclass

from dvfl.experiments.declared import Contrast, Experiment, Grid
from dvfl.experiments.results import Cell, Results
from dvfl.experiments.shown import MARKS, NOTHING, Shown, Table, listed, number, signed
from dvfl.experiments.statistics import Comparison, compare, holm

SIGNIFICANT = 0.05  # Holm-adjusted p below which two cells are told apart
APART = 0.4  # points between our mean and the paper's from which a cell is named

STATISTICS = (
    "A cell is the mean over seeds and twice their sample standard deviation, without values beyond 1.5 interquartile"
    " ranges outside the quartiles, as in the paper's Table 1. Comparisons leave nothing out: cells are paired by seed,"
    " the interval is that of the mean difference (95 %, Student's t), the test a two-sided paired t-test, its p values"
    f" adjusted by Holm for all comparisons of the experiment. {MARKS['ahead']}: the first is ahead,"
    f" {MARKS['behind']}: it is behind, adjusted p < {SIGNIFICANT:g}. Repeated splits share rows, so tests over them"
    " are somewhat too sure of themselves."
)


@dataclass(frozen=True)
class Found:
    """What came of a contrast; p is adjusted for all contrasts of the experiment."""

    contrast: Contrast
    comparison: Comparison
    adjusted_p: float

    @property
    def verdict(self) -> str:
        if self.adjusted_p >= SIGNIFICANT:
            return "level"
        return "ahead" if self.comparison.difference > 0 else "behind"


def contrasted(experiment: Experiment, results: Results) -> list[Found]:
    """The experiment's contrasts, as far as at least two seeds have both cells."""
    pairs = []
    for contrast in experiment.contrasts:
        one, other = (_find(results, side, contrast.dataset) for side in (contrast.one, contrast.other))
        comparison = compare(one.by_seed, other.by_seed) if one is not None and other is not None else None
        if comparison is not None:
            pairs.append((contrast, comparison))
    adjusted = holm([comparison.p for _, comparison in pairs])
    return [Found(*pair, p) for pair, p in zip(pairs, adjusted, strict=True)]


def grid_tables(experiment: Experiment, grid: Grid, results: Results) -> list[Table]:
    """Ours, ours minus the paper's, what else the experiment shows, and its contrasts."""
    tables = [_table(grid, results, "Ours", _OURS_NOTE, _ours)]
    if any(cell.paper_mean is not None for cell in results.cells):
        note = f"Difference of the means in points, and the paper's mean. Bold: more than {APART:g} apart."
        tables.append(_table(grid, results, "Ours minus the paper's", note, _minus_paper))
    for title, note, show in grid.also:
        tables.append(_table(grid, results, title, note, _told(show)))
    found = contrasted(experiment, results)
    if found:
        heads = [("", name) for name in ("difference", "95 % interval", "adjusted p", "pairs")]
        rows = [(one.contrast.label, _contrast_cells(one)) for one in found]
        note = f"Mean difference in points over pairs of seeds. {MARKS['ahead']} ahead, {MARKS['behind']} behind."
        tables.append(Table("Comparisons", note, heads, rows, corner="first against second"))
    return tables


def grid_findings(experiment: Experiment, results: Results) -> dict[str, list[str]]:
    """Sentences made from the numbers, by heading."""
    said = {
        "What the comparisons say": [_sentence(one) for one in contrasted(experiment, results)],
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
    if cell.mean is None or cell.two_sigma is None:
        return Shown(NOTHING)
    best = max(peer.mean for peer in peers if peer.mean is not None)
    text = number(cell.mean)
    return Shown(text, f"± {number(cell.two_sigma)}", strong=len(peers) > 1 and text == number(best))


def _minus_paper(cell: Cell, peers: list[Cell]) -> Shown:
    if cell.mean is None or cell.paper_mean is None:
        return Shown("")
    difference = cell.mean - cell.paper_mean
    return Shown(signed(difference), f"paper {number(cell.paper_mean)}", strong=abs(difference) > APART)


def _contrast_cells(found: Found) -> list[Shown]:
    comparison = found.comparison
    return [
        Shown(signed(comparison.difference), verdict=found.verdict),
        Shown(f"{number(comparison.low)} to {number(comparison.high)}"),
        Shown(_p(found.adjusted_p)),
        Shown(str(comparison.n)),
    ]


def _sentence(found: Found) -> str:
    comparison = found.comparison
    what = {"ahead": "ahead", "behind": "behind", "level": "not told apart"}[found.verdict]
    bounds = f"95 % interval {number(comparison.low)} to {number(comparison.high)}"
    return f"{found.contrast.label}: {signed(comparison.difference)} ({bounds}; p {_p(found.adjusted_p)}), {what}."


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _from_the_paper(experiment: Experiment, results: Results) -> list[str]:
    grid = experiment.grid
    published = [cell for cell in results.cells if cell.mean is not None and cell.paper_mean is not None]
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
