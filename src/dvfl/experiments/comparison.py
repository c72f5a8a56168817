"""What a Table 1 says: DVFL against every baseline in every column, and ours against the paper's, in words."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dvfl.experiments.paper.published import TABLE1
from dvfl.experiments.reasons import REASONS
from dvfl.experiments.results import Cell, Results
from dvfl.experiments.shown import listed, number, signed
from dvfl.experiments.statistics import Comparison, compare, holm

Column: TypeAlias = tuple[str, float | None]  # kind of fault and R_u
Verdict: TypeAlias = Literal["ahead", "level", "behind"]

SIGNIFICANT = 0.05  # Holm-adjusted p below which DVFL and a baseline are told apart
BEHIND = 0.1  # points; an interval that reaches further down does not rule out that DVFL is behind by more
COLLAPSE = 5.0  # points below the strategy's own column without faults
APART = 0.4  # points between our mean and the paper's from which a cell is named

_OURS = "dvfl"
_KINDS = ("none", "connection", "guest", "host")


@dataclass(frozen=True)
class Judged:
    """DVFL against one baseline in one column; p is adjusted for all tests of the table."""

    strategy: str
    column: Column
    comparison: Comparison
    adjusted_p: float

    @property
    def verdict(self) -> Verdict:
        """DVFL is ahead or behind where the test tells them apart, and level where it does not."""
        if self.adjusted_p >= SIGNIFICANT:
            return "level"
        return "ahead" if self.comparison.difference > 0 else "behind"


def table(results: Results) -> dict[tuple[str, Column], Cell]:
    """The cells by strategy and column, strategies in the paper's order, columns from none to host."""
    cells = {(cell.strategy, (cell.condition["kind"], cell.condition["up"])): cell for cell in results.cells}
    return dict(sorted(cells.items(), key=lambda item: (_row(item[0][0]), _place(item[0][1]))))


def strategies(results: Results) -> list[str]:
    """The table's rows from top to bottom."""
    return list(dict.fromkeys(strategy for strategy, _ in table(results)))


def columns(results: Results) -> list[Column]:
    """The table's columns from left to right."""
    return sorted({column for _, column in table(results)}, key=_place)


def label(column: Column) -> str:
    """A column's name: the kind of fault and R_u."""
    kind, up = column
    return "no faults" if up is None else f"{kind} {up:g}"


def judged(results: Results) -> list[Judged]:
    """DVFL against every baseline in every column where at least two seeds have both."""
    cells = table(results)
    tests = []
    for (strategy, column), cell in cells.items():
        ours = cells.get((_OURS, column))
        if strategy == _OURS or ours is None:
            continue
        comparison = compare(ours.by_seed, cell.by_seed)
        if comparison is not None:
            tests.append((strategy, column, comparison))
    adjusted = holm([comparison.p for _, _, comparison in tests])
    return [Judged(*test, p) for test, p in zip(tests, adjusted, strict=True)]


def findings(results: Results) -> dict[str, list[str]]:
    """Sentences made from the numbers, by heading."""
    tests = judged(results)
    return {
        "DVFL under faults": _under_faults(results),
        "DVFL against the baselines": _against_baselines(results, tests),
        "Where a baseline is level or ahead": _level_or_ahead(results, tests),
        "Where ours differs from the paper's figures": _from_the_paper(results),
    }


def _row(strategy: str) -> tuple[int, str]:
    order = list(TABLE1)
    return (order.index(strategy) if strategy in order else len(order)), strategy


def _place(column: Column) -> tuple[int, float]:
    kind, up = column
    return _KINDS.index(kind), -(up or 0.0)


def _under_faults(results: Results) -> list[str]:
    cells = table(results)
    means = {column: cell.mean for (strategy, column), cell in cells.items() if strategy == _OURS}
    known = {column: mean for column, mean in means.items() if mean is not None}
    plain, faulty = known.pop(("none", None), None), known
    if plain is None or not faulty:
        return ["DVFL's columns with and without faults are not both here."]
    worst = min(faulty, key=lambda column: faulty[column])
    lowest = f"the lowest is {label(worst)} with {_spread(cells[_OURS, worst])}"
    reach = math.ceil(100 * (plain - faulty[worst])) / 100  # rounded up, so that the sentence holds
    further = f"more than {reach:.2f} below it" if faulty[worst] < plain else "below it"
    where = f"no fault column is {further}"
    sentences = [f"Without faults DVFL reaches {_spread(cells[_OURS, ('none', None)])}; {where}; {lowest}."]
    cost = compare(cells[_OURS, ("none", None)].by_seed, cells[_OURS, worst].by_seed)
    if cost is not None:
        interval = f"95 % interval {number(cost.low)} to {number(cost.high)}"
        sentences.append(f"Paired by seed, the faults of {label(worst)} cost {number(cost.difference)} ({interval}).")
    fallen = _collapsed(cells, _OURS)
    sentences.append(
        f"It collapses, more than {COLLAPSE:g} points below no faults, in {listed(fallen)}."
        if fallen
        else f"It collapses nowhere: no column is more than {COLLAPSE:g} points below no faults."
    )
    return sentences


def _against_baselines(results: Results, tests: list[Judged]) -> list[str]:
    cells, rivals = table(results), [name for name in strategies(results) if name != _OURS]
    sentences = []
    if tests:
        counts = {verdict: sum(test.verdict == verdict for test in tests) for verdict in ("ahead", "level", "behind")}
        sentences.append(
            f"Of {len(tests)} comparisons DVFL is ahead in {counts['ahead']}, level in {counts['level']}"
            f" and behind in {counts['behind']}."
        )
    else:
        sentences.append("No column has two seeds of DVFL and of a baseline, so nothing can be tested.")
    by_text: dict[str, list[str]] = {}  # columns of which the same is to be said share a sentence
    for column in columns(results):
        here = [test for test in tests if test.column == column]
        if here:
            by_text.setdefault(_standing(here), []).append(label(column))
    sentences += [f"{_capital(listed(names))}: {text}." for text, names in by_text.items()]
    faulty = [column for column in columns(results) if column[1] is not None]
    for strategy in rivals:
        empty = [column for name, column in cells if name == strategy and cells[name, column].mean is None]
        if empty:
            names = [label(column) for column in empty]
            where = f"all {len(empty)} fault columns" if empty == faulty else listed(names)
            sentences.append(f"{strategy} stalls in {where} and gives no model there.")
    fallen = [f"{strategy} in {listed(low)}" for strategy in rivals if (low := _collapsed(cells, strategy))]
    if fallen:
        sentences.append(f"Collapsed, more than {COLLAPSE:g} points below their own no faults: {'; '.join(fallen)}.")
    return sentences


def _standing(tests: list[Judged]) -> str:
    by_verdict: dict[Verdict, list[str]] = {"ahead": [], "level": [], "behind": []}
    for test in tests:
        by_verdict[test.verdict].append(test.strategy)
    words: dict[Verdict, str] = {"ahead": "ahead of", "level": "level with", "behind": "behind"}
    parts = []
    for verdict, names in by_verdict.items():
        if names:
            parts.append(f"{words[verdict]} {f'all {len(names)}' if len(names) == len(tests) > 1 else listed(names)}")
    return "; ".join(parts)


def _level_or_ahead(results: Results, tests: list[Judged]) -> list[str]:
    if not tests:
        return ["Not known: nothing could be tested."]
    sentences = []
    for column in columns(results):
        parts = []
        for test in (test for test in tests if test.column == column and test.verdict != "ahead"):
            word = "level" if test.verdict == "level" else "ahead"
            found = test.comparison
            bounds = f"{number(found.low)} to {number(found.high)}"
            parts.append(f"{test.strategy} {word}, {signed(found.difference)} ({bounds})")
        if parts:
            sentences.append(f"{_capital(label(column))}: {'; '.join(parts)}.")
    if not sentences:
        return ["In no column."]
    unsure: dict[str, list[str]] = {}
    for test in tests:
        if test.verdict != "ahead" and test.comparison.low < -BEHIND:
            unsure.setdefault(test.strategy, []).append(label(test.column))
    open_ = [f"{strategy} ({', '.join(names)})" for strategy, names in unsure.items()]
    sentences.insert(0, "The numbers are DVFL minus the baseline, with the 95 % interval.")
    sentences.append(
        f"That DVFL is behind by more than {BEHIND:g} is not ruled out against {listed(open_)}."
        if open_
        else f"In none of them does the interval allow DVFL to be behind by more than {BEHIND:g}."
    )
    return sentences


def _from_the_paper(results: Results) -> list[str]:
    sentences = []
    if results.rows is not None:
        sentences.append(
            f"Only {results.rows:,} training rows were used, so the paper's figures are no measure for these."
        )
    if results.preset != "paper":
        sentences.append(f"The preset {results.preset} is not the paper's settings, so differences are to be expected.")
    reasons = REASONS if results.preset == "paper" and results.rows is None else {}
    cells, named = table(results), 0
    for strategy in strategies(results):
        parts = [text for (name, column), cell in cells.items() if name == strategy and (text := _apart(column, cell))]
        if parts:
            named += len(parts)
            sentences.append(" ".join(filter(None, [f"{strategy}: {', '.join(parts)}.", reasons.get(strategy)])))
    published = sum(cell.mean is not None and cell.paper_mean is not None for cell in cells.values())
    sentences.append(
        f"The means of the other cells are within {APART:g} of the paper's."
        if named
        else f"The means of all {published} cells that both have are within {APART:g}."
    )
    return sentences


def _apart(column: Column, cell: Cell) -> str:
    """How a cell differs from the paper's by more than `APART`; empty where it does not."""
    if cell.mean is None or cell.paper_mean is None:
        if cell.mean is cell.paper_mean:
            return ""
        ours = "N/A" if cell.mean is None else number(cell.mean)
        return f"{label(column)} {ours} where the paper has {'N/A' if cell.paper_mean is None else cell.paper_mean}"
    difference = cell.mean - cell.paper_mean
    if abs(difference) <= APART:
        return ""
    allowed = abs(difference) <= (cell.two_sigma or 0) + (cell.paper_two_sigma or 0)
    return f"{label(column)} {signed(difference)}{' (the 2 sigma ranges overlap)' if allowed else ''}"


def _collapsed(cells: dict[tuple[str, Column], Cell], strategy: str) -> list[str]:
    plain = cells.get((strategy, ("none", None)))
    if plain is None or plain.mean is None:
        return []
    means = {column: cell.mean for (name, column), cell in cells.items() if name == strategy}
    return [
        f"{label(column)} ({number(mean)})"
        for column, mean in means.items()
        if mean is not None and mean < plain.mean - COLLAPSE
    ]


def _spread(cell: Cell) -> str:
    return f"{cell.mean:.2f} ± {cell.two_sigma:.2f} %"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
