"""Table 1 as people read it: ours, ours minus the paper's, and DVFL minus each baseline."""

from collections.abc import Callable

from dvfl.experiments.comparison import (
    APART,
    SIGNIFICANT,
    Column,
    Judged,
    columns,
    judged,
    strategies,
    table,
)
from dvfl.experiments.results import Cell, Results
from dvfl.experiments.shown import MARKS, NOTHING, Shown, Table, number, signed

STATISTICS = (
    "A cell is the mean over seeds and twice their sample standard deviation, without values beyond 1.5 interquartile"
    " ranges outside the quartiles, as in the paper. Tests leave nothing out: DVFL and a baseline are paired by seed,"
    " since the same seed means the same luck where their requests coincide. The interval is that of the mean"
    " difference (95 %, Student's t), the test a two-sided paired t-test, its p values adjusted by Holm for all tests"
    f" of the table. {MARKS['ahead']}: DVFL ahead, {MARKS['behind']}: DVFL behind, adjusted p < {SIGNIFICANT:g}."
    " Level means that this many seeds do not tell them apart, not that they are equal. Intervals are not adjusted, so"
    " one may leave out 0 where the adjusted test finds nothing."
)


def table1_tables(results: Results) -> list[Table]:
    """What is shown of it."""
    return [_ours(results), _minus_paper(results), _minus_baselines(results)]


def _ours(results: Results) -> Table:
    cells, across = table(results), columns(results)
    best = {}
    for column in across:
        means = [cell.mean for (_, other), cell in cells.items() if other == column and cell.mean is not None]
        best[column] = number(max(means)) if means else ""

    def shown(column: Column, cell: Cell) -> Shown:
        if cell.mean is None or cell.two_sigma is None:
            return Shown(NOTHING)
        text = number(cell.mean)
        return Shown(text, f"± {number(cell.two_sigma)}", strong=text == best[column])

    down = " and ".join(sorted({f"{cell.condition['down']:g}" for cell in results.cells if cell.condition["down"]}))
    note = (
        f"Test accuracy in percent, mean ± 2 sigma, at R_d {down or 0}; the number in a column's head is R_u."
        " Bold: the best mean of a column."
    )
    return Table("Ours", note, _heads(across), _rows(results, shown))


def _minus_paper(results: Results) -> Table:
    def shown(column: Column, cell: Cell) -> Shown:
        if cell.mean is None or cell.paper_mean is None:
            return Shown(NOTHING)
        difference = cell.mean - cell.paper_mean
        return Shown(signed(difference), strong=abs(difference) > APART)

    note = f"Difference of the means in points. Bold: more than {APART:g}."
    return Table("Ours minus the paper's", note, _heads(columns(results)), _rows(results, shown))


def _rows(results: Results, shown: Callable[[Column, Cell], Shown]) -> list[tuple[str, list[Shown]]]:
    """Every strategy with what is shown of its cells, column by column."""
    cells, across = table(results), columns(results)
    return [
        (
            strategy,
            [shown(column, cell) if (cell := cells.get((strategy, column))) else Shown(NOTHING) for column in across],
        )
        for strategy in strategies(results)
    ]


def _minus_baselines(results: Results) -> Table:
    across = columns(results)
    tests = {(test.strategy, test.column): test for test in judged(results)}
    rows = [
        (strategy, [_judgement(tests.get((strategy, column))) for column in across])
        for strategy in strategies(results)
        if strategy != "dvfl"
    ]
    note = (
        "Mean difference in points over pairs of seeds, and its 95 % interval."
        f" {MARKS['ahead']} DVFL ahead, {MARKS['behind']} DVFL behind (adjusted p < {SIGNIFICANT:g})."
    )
    return Table("DVFL minus each baseline", note, _heads(across), rows)


def _heads(across: list[Column]) -> list[tuple[str, str]]:
    return [("no faults", "") if up is None else (kind, f"{up:g}") for kind, up in across]


def _judgement(test: Judged | None) -> Shown:
    if test is None:
        return Shown(NOTHING)
    comparison = test.comparison
    rest = f"{number(comparison.low)} to {number(comparison.high)}"
    return Shown(signed(comparison.difference), rest, verdict=test.verdict)
