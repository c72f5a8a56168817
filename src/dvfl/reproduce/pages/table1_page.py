"""Table 1 as people read it: ours, ours minus the paper's, and DVFL minus each baseline."""

from collections.abc import Callable

from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.outcome.statistics import MARGIN, SIGNIFICANT
from dvfl.reproduce.pages.table1_findings import (
    POOLS,
    Column,
    Family,
    columns,
    judged,
    judged_pooled,
    strategies,
    table,
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
    number,
    shown_judgement,
    signed,
)
from dvfl.reproduce.paper.published import TABLE1

STATISTICS = (
    "A cell is the mean over seeds and twice their sample standard deviation, without values beyond 1.5 interquartile"
    f" ranges outside the quartiles, as in the paper. {TESTS} The same seed means the same luck where requests"
    " coincide, but accuracies of two strategies hardly go together by seed, so pairing gains next to nothing here."
)


def table1_tables(results: Results) -> list[Table]:
    """What is shown of it."""
    return [
        _ours(results),
        _minus_paper(results),
        _unfiltered(results),
        _minus_others(results, "baselines", "DVFL minus each baseline"),
        _pooled(results, "baselines", "DVFL minus each baseline, columns pooled"),
        *(
            [
                _minus_others(results, "variants", "DVFL minus its variants"),
                _pooled(results, "variants", "DVFL minus its variants, columns pooled"),
            ]
            if judged(results, "variants")
            else []
        ),
    ]


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
        if cell.untouched:
            return Shown(UNTOUCHED)
        return Shown(text, f"± {number(cell.two_sigma)}", strong=text == best[column])

    down = " and ".join(sorted({f"{cell.condition['down']:g}" for cell in results.cells if cell.condition["down"]}))
    note = (
        f"Test accuracy in percent, mean ± 2 sigma, at R_d {down or 0}; the number in a column's head is R_u."
        f" Bold: the best mean of a column. {UNTOUCHED_NOTE}"
    )
    return Table("Ours", note, _heads(across), _rows(results, shown))


def _minus_paper(results: Results) -> Table:
    def shown(column: Column, cell: Cell) -> Shown:
        if cell.mean is None or cell.paper_mean is None:
            return Shown(NOTHING)
        difference = cell.mean - cell.paper_mean
        return Shown(signed(difference), strong=abs(difference) > APART)

    note = (
        f"Difference of the means in points. Bold: more than {APART:g}. Rows that the paper does not have are left out."
    )
    rows = [row for row in _rows(results, shown) if row[0] in TABLE1]
    return Table("Ours minus the paper's", note, _heads(columns(results)), rows)


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


def _unfiltered(results: Results) -> Table:
    def shown(column: Column, cell: Cell) -> Shown:
        mean = cell.unfiltered_mean
        return Shown(NOTHING) if mean is None else Shown(UNTOUCHED if cell.untouched else number(mean))

    note = f"Means with no seed left out: what the differences below are differences of. {UNTOUCHED_NOTE}"
    return Table("Means of all seeds", note, _heads(columns(results)), _rows(results, shown))


def _minus_others(results: Results, family: Family, title: str) -> Table:
    across = columns(results)
    tests = {(test.strategy, test.column): test.judgement for test in judged(results, family)}
    rows = [
        (strategy, [shown_judgement(tests.get((strategy, column))) for column in across])
        for strategy in strategies(results)
        if any(name == strategy for name, _ in tests)
    ]
    return Table(title, _DIFFERENCES, _heads(across), rows)


def _pooled(results: Results, family: Family, title: str) -> Table:
    tests = {(test.strategy, test.column): test.judgement for test in judged_pooled(results, family)}
    rows = [
        (strategy, [shown_judgement(tests.get((strategy, pool))) for pool in POOLS])
        for strategy in strategies(results)
        if any(name == strategy for name, _ in tests)
    ]
    return Table(title, f"Each seed's mean over the columns. {_DIFFERENCES}", [("", pool) for pool in POOLS], rows)


_DIFFERENCES = (
    f"Mean difference in points over all seeds, and its 95 % interval. {MARKS['ahead']} DVFL ahead,"
    f" {MARKS['behind']} DVFL behind (adjusted p < {SIGNIFICANT:g}); {MARKS['level']} shown to be within {MARGIN:g}."
)


def _heads(across: list[Column]) -> list[tuple[str, str]]:
    return [("no faults", "") if up is None else (kind, f"{up:g}") for kind, up in across]
