"""What a Table 1 says: DVFL against every baseline in every column, and ours against the paper's, in words."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.outcome.statistics import (
    Comparison,
    Judgement,
    Verdict,
    compare,
    compare_differences,
    differences,
    judge,
    pooled,
)
from dvfl.reproduce.pages.paper_differences import REASONS
from dvfl.reproduce.pages.text_tables import APART, WORDS, judgement_fields, listed, number, signed
from dvfl.reproduce.paper.published import TABLE1
from dvfl.reproduce.paper.table1 import ROWS

Column: TypeAlias = tuple[str, float | None]  # kind of fault and R_u
Family: TypeAlias = Literal["baselines", "variants"]  # others, or DVFL itself with one choice changed

COLLAPSE = 5.0  # points below the strategy's own column without faults

_OURS = "dvfl"
_KINDS = ("none", "connection", "guest", "host")
_SHORT = 0.5  # R_u from which a fault is over soon
# Columns that are also tested together: each seed's mean difference over them is one value.
POOLS: Mapping[str, Sequence[Column]] = {
    "R_u 1 and 0.5": [column for column in TABLE1[_OURS] if (column[1] or 0.0) >= _SHORT],
    "R_u 0.1": [column for column in TABLE1[_OURS] if column[1] is not None and column[1] < _SHORT],
    "all faults": [column for column in TABLE1[_OURS] if column[1] is not None],
}


@dataclass(frozen=True)
class Judged:
    """DVFL against another strategy in one column, or in several that are pooled."""

    strategy: str
    column: Column | str  # a name of `POOLS`
    judgement: Judgement

    @property
    def comparison(self) -> Comparison:
        return self.judgement.comparison

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict


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


def judged(results: Results, family: Family = "baselines") -> list[Judged]:
    """DVFL against every strategy of a family in every column where at least two seeds have both.

    Strategies that a column's faults treat alike have the same numbers there, and share a test.
    """
    cells = table(results)
    found: dict[tuple[str, Column], Comparison] = {}
    same: dict[tuple[str, Column], Hashable] = {}
    for (strategy, column), cell in cells.items():
        ours = cells.get((_OURS, column))
        if strategy == _OURS or ours is None or _variant(strategy) != (family == "variants"):
            continue
        comparison = compare(ours.by_seed, cell.by_seed)
        if comparison is not None:
            found[strategy, column] = comparison
            same[strategy, column] = (*ours.accuracy, "against", *cell.accuracy)
    return [Judged(strategy, column, one) for (strategy, column), one in judge(found, same).items()]


def distinct(results: Results, tests: Sequence[Judged]) -> list[Judged]:
    """One of those that share a test: the first from top to bottom."""
    cells = table(results)
    kept: dict[Hashable, Judged] = {}
    for test in tests:
        assert not isinstance(test.column, str)
        both = (cells[name, test.column] for name in (_OURS, test.strategy))
        kept.setdefault(tuple(value for cell in both for value in (*cell.accuracy, "end")), test)
    return list(kept.values())


def judged_pooled(results: Results, family: Family = "baselines") -> list[Judged]:
    """The same over several columns at once, where a strategy has values in all of them."""
    cells = table(results)
    found: dict[tuple[str, str], Comparison] = {}
    same: dict[tuple[str, str], Hashable] = {}
    for strategy in strategies(results):
        if strategy == _OURS or _variant(strategy) != (family == "variants"):
            continue
        for name, across in POOLS.items():
            pairs = [(cells.get((_OURS, column)), cells.get((strategy, column))) for column in across]
            each = [differences(ours.by_seed, theirs.by_seed) for ours, theirs in pairs if ours and theirs]
            values = pooled(each) if len(each) == len(across) else {}
            comparison = compare_differences([*values.values()])
            if comparison is not None:
                found[strategy, name] = comparison
                same[strategy, name] = tuple(values.items())
    return [Judged(strategy, pool, one) for (strategy, pool), one in judge(found, same).items()]


def plain_comparisons(results: Results) -> list[dict[str, Any]]:
    """Every comparison as the results file has it."""
    plain = []
    for family in ("baselines", "variants"):
        for test in judged(results, family):
            condition = dict(zip(("kind", "up"), test.column, strict=True))
            plain.append(
                {
                    "first": _OURS,
                    "second": test.strategy,
                    "condition": condition,
                    "family": family,
                    **judgement_fields(test.judgement),
                }
            )
        for test in judged_pooled(results, family):
            plain.append(
                {
                    "first": _OURS,
                    "second": test.strategy,
                    "pooled": test.column,
                    "family": f"{family}, pooled",
                    **judgement_fields(test.judgement),
                }
            )
    return plain


def findings(results: Results) -> dict[str, list[str]]:
    """Sentences made from the numbers, by heading; where a baseline is ahead comes first."""
    tests = judged(results)
    found = {
        "Where a baseline is ahead": _ahead_of_us(results, tests),
        "DVFL against the baselines": _against_baselines(results, tests),
        "What is open": _open(results, tests),
        "DVFL under faults": _under_faults(results),
        "What hosts and replay bring": _variants(results),
        "Where ours differs from the paper's figures": _from_the_paper(results),
    }
    return {heading: sentences for heading, sentences in found.items() if sentences}


def _variant(strategy: str) -> bool:
    return strategy.startswith(f"{_OURS}-")


def _row(strategy: str) -> tuple[int, str]:
    return (ROWS.index(strategy) if strategy in ROWS else len(ROWS)), strategy


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
        sentences.append(f"The faults of {label(worst)} cost {number(cost.difference)} ({interval}).")
    fallen = _collapsed(cells, _OURS)
    sentences.append(
        f"It collapses, more than {COLLAPSE:g} points below no faults, in {listed(fallen)}."
        if fallen
        else f"It collapses nowhere: no column is more than {COLLAPSE:g} points below no faults."
    )
    return sentences


def _ahead_of_us(results: Results, tests: list[Judged]) -> list[str]:
    if not _tested(tests):
        return ["Not known: nothing could be tested."]
    sentences = []
    for column in columns(results):
        parts = [_measured(test) for test in tests if test.column == column and test.verdict == "behind"]
        if parts:
            sentences.append(f"{_capital(label(column))}: {'; '.join(parts)}.")
    for test in judged_pooled(results):
        if test.verdict == "behind":
            sentences.append(f"Pooled over {test.column}: {_measured(test)}.")
    if not sentences:
        return ["In no column, and in no pool of columns."]
    return ["The numbers are DVFL minus the baseline, means of all seeds, with the 95 % interval.", *sentences]


def _against_baselines(results: Results, tests: list[Judged]) -> list[str]:
    cells, rivals = table(results), [name for name in strategies(results) if name != _OURS and not _variant(name)]
    sentences = []
    known = _tested(tests)
    if known:
        once = distinct(results, known)
        counts = {verdict: sum(test.verdict == verdict for test in once) for verdict in WORDS}
        sentences.append(
            f"Of {len(once)} distinct comparisons DVFL is ahead in {counts['ahead']}, level in {counts['level']},"
            f" behind in {counts['behind']}, and {counts['open']} are open."
        )
        if len(once) < len(known):
            sentences.append(
                f"The table shows {len(known)}: strategies that a column's faults treat alike have the same numbers"
                " there, and are counted once."
            )
    else:
        sentences.append("No column has enough seeds of DVFL and of a baseline, so nothing can be tested.")
    by_text: dict[str, list[str]] = {}  # columns of which the same is to be said share a sentence
    for column in columns(results):
        here = [test for test in known if test.column == column]
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
    by_verdict: dict[Verdict, list[str]] = {verdict: [] for verdict in WORDS}
    for test in tests:
        by_verdict[test.verdict].append(test.strategy)
    parts = []
    for verdict, names in by_verdict.items():
        if names:
            whole = f"all {len(names)}" if len(names) == len(tests) > 1 else listed(names)
            parts.append(f"{WORDS[verdict]} {whole}")
    return "; ".join(parts)


def _open(results: Results, tests: list[Judged]) -> list[str]:
    """Neither told apart nor shown to be level; in words, since a table cannot say what the data do not."""
    sentences = []
    for column in columns(results):
        parts = [_measured(test) for test in _tested(tests) if test.column == column and test.verdict == "open"]
        if parts:
            sentences.append(f"{_capital(label(column))}: {'; '.join(parts)}.")
    return sentences


def _variants(results: Results) -> list[str]:
    """DVFL against itself with another order of replay, hosts that learn nothing, or none."""
    sentences = []
    for strategy in (name for name in strategies(results) if _variant(name)):
        parts = []
        for test in (*judged(results, "variants"), *judged_pooled(results, "variants")):
            if test.strategy == strategy and (isinstance(test.column, str) or test.column == ("none", None)):
                where = test.column if isinstance(test.column, str) else label(test.column)
                found = test.comparison
                bounds = f"{number(found.low)} to {number(found.high)}"
                parts.append(f"{where} {signed(found.difference)} ({bounds}, {test.verdict})")
        if parts:
            sentences.append(f"dvfl minus {strategy}: {', '.join(parts)}.")
    return sentences


def _tested(tests: Sequence[Judged]) -> list[Judged]:
    """Those with enough seeds for a verdict."""
    return [test for test in tests if test.comparison.p is not None]


def _measured(test: Judged) -> str:
    found = test.comparison
    return f"{test.strategy} {signed(found.difference)} ({number(found.low)} to {number(found.high)})"


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
    for strategy in (name for name in strategies(results) if name in TABLE1):
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
