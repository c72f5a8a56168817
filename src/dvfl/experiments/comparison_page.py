"""Results as people read them: NAME.md for one experiment, report.html for all of a folder."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from dvfl.experiments.comparison import (
    APART,
    SIGNIFICANT,
    Column,
    Judged,
    columns,
    findings,
    judged,
    label,
    number,
    signed,
    strategies,
    table,
)
from dvfl.experiments.results import Cell, Results
from dvfl.experiments.table1_figure import table1_inline

_TITLES = {"table1": "Table 1: accuracy under faults"}
_MARKS = {"ahead": "▲", "behind": "▼", "level": ""}
_NOTHING = "N/A"

STATISTICS = (
    "A cell is the mean over seeds and twice their sample standard deviation, without values beyond 1.5 interquartile"
    " ranges outside the quartiles, as in the paper. Tests leave nothing out: DVFL and a baseline are paired by seed,"
    " since the same seed means the same luck where their requests coincide. The interval is that of the mean"
    " difference (95 %, Student's t), the test a two-sided paired t-test, its p values adjusted by Holm for all tests"
    f" of the table. {_MARKS['ahead']}: DVFL ahead, {_MARKS['behind']}: DVFL behind, adjusted p < {SIGNIFICANT:g}."
    " Level means that this many seeds do not tell them apart, not that they are equal. Intervals are not adjusted, so"
    " one may leave out 0 where the adjusted test finds nothing."
)


@dataclass(frozen=True)
class Shown:
    """A table's cell as text: the number, its spread or interval, and whether it stands out."""

    text: str
    rest: str = ""
    strong: bool = False
    verdict: str = ""

    @property
    def mark(self) -> str:
        return _MARKS.get(self.verdict, "")


@dataclass(frozen=True)
class Table:
    """A title, a line on how to read it, and rows of cells with their names."""

    title: str
    note: str
    heads: list[tuple[str, str]]  # a group, empty for none, and a name in it
    rows: list[tuple[str, list[Shown]]]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Every group with its number of columns; none at all where no column has one."""
        groups = [(group, len(list(heads))) for group, heads in itertools.groupby(self.heads, lambda head: head[0])]
        return groups if any(group for group, _ in groups) else []


def markdown(results: Results) -> str:
    """One experiment as text; its figure is the file beside it."""
    lines = [f"# {_title(results)}", ""]
    lines += [f"- {name}: {f'`{value}`' if name == 'command' else value}" for name, value in _facts(results)]
    lines += ["", *([results.note, ""] if results.note else [])]
    first, *others = _tables(results)
    lines += _as_markdown(first) + _paragraph(_gaps(results))
    if results.experiment == "table1":
        lines += ["![Ours beside the paper's, by column](table1.svg)", ""]
        for heading, sentences in findings(results).items():
            lines += [f"## {heading}", "", *(f"- {sentence}" for sentence in sentences), ""]
    for other in others:
        lines += _as_markdown(other)
    if results.experiment == "table1":
        lines += ["## Statistics", "", STATISTICS, ""]
    return "\n".join(lines).rstrip() + "\n"


def page(all_results: Sequence[Results]) -> str:
    """All experiments of a folder on one page that needs nothing but itself."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dvfl.experiments"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("comparison.html").render(sections=[_section(results) for results in all_results])


def _section(results: Results) -> dict[str, Any]:
    known = results.experiment == "table1"
    first, *others = _tables(results)
    facts = dict(_facts(results))
    return {
        "name": results.experiment,
        "title": _title(results),
        "facts": facts,
        "note": results.note,
        "first": first,
        "gaps": _gaps(results),
        "figure": Markup(table1_inline(results)) if known else None,
        "findings": findings(results) if known else {},
        "others": others,
        "statistics": STATISTICS if known else "",
        "cells": [(cell, _condition(cell, results)) for cell in _ordered(results)],
    }


def _title(results: Results) -> str:
    return _TITLES.get(results.experiment, results.experiment.capitalize())


def _facts(results: Results) -> list[tuple[str, str]]:
    """How, where and how long."""
    seeds = sorted({seed for cell in results.cells for seed in cell.seeds})
    return [
        ("command", results.command),
        ("preset", results.preset),
        ("data", ", ".join(dict.fromkeys(cell.dataset for cell in results.cells))),
        ("training rows", "all" if results.rows is None else f"{results.rows:,}"),
        ("seeds", f"{len(seeds)} ({seeds[0]} to {seeds[-1]})" if len(seeds) > 1 else str(len(seeds))),
        ("time", _duration(results.seconds)),
        ("machine", ", ".join(f"{name} {value}" for name, value in results.machine.items())),
        ("versions", ", ".join(f"{name} {value}" for name, value in results.versions.items())),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60} min"


def _tables(results: Results) -> list[Table]:
    """The experiment's own tables; one plain table for an experiment that has none."""
    if results.experiment != "table1":
        return [_plain(results)]
    return [_ours(results), _minus_paper(results), _minus_baselines(results)]


def _ours(results: Results) -> Table:
    cells, across = table(results), columns(results)
    best = {}
    for column in across:
        means = [cell.mean for (_, other), cell in cells.items() if other == column and cell.mean is not None]
        best[column] = number(max(means)) if means else ""

    def shown(column: Column, cell: Cell) -> Shown:
        if cell.mean is None or cell.two_sigma is None:
            return Shown(_NOTHING)
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
            return Shown(_NOTHING)
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
            [shown(column, cell) if (cell := cells.get((strategy, column))) else Shown(_NOTHING) for column in across],
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
        f" {_MARKS['ahead']} DVFL ahead, {_MARKS['behind']} DVFL behind (adjusted p < {SIGNIFICANT:g})."
    )
    return Table("DVFL minus each baseline", note, _heads(across), rows)


def _heads(across: list[Column]) -> list[tuple[str, str]]:
    return [("no faults", "") if up is None else (kind, f"{up:g}") for kind, up in across]


def _judgement(test: Judged | None) -> Shown:
    if test is None:
        return Shown(_NOTHING)
    comparison = test.comparison
    rest = f"{number(comparison.low)} to {number(comparison.high)}"
    return Shown(signed(comparison.difference), rest, verdict=test.verdict)


def _plain(results: Results) -> Table:
    rows = []
    for cell in results.cells:
        ours, papers = _mean(cell.mean, cell.two_sigma), _mean(cell.paper_mean, cell.paper_two_sigma)
        both = cell.mean is not None and cell.paper_mean is not None
        difference = signed((cell.mean or 0) - (cell.paper_mean or 0)) if both else ""
        text = [cell.dataset, _condition(cell, results), ours, papers, difference, cell.status]
        rows.append((cell.strategy, [Shown(part) for part in text]))
    heads = [("", name) for name in ("data", "condition", "ours", "the paper's", "difference", "status")]
    return Table("Ours beside the paper's", "Test accuracy in percent, mean ± 2 sigma.", heads, rows)


def _mean(mean: float | None, two_sigma: float | None) -> str:
    if mean is None:
        return _NOTHING
    return number(mean) if two_sigma is None else f"{number(mean)} ± {number(two_sigma)}"


def _ordered(results: Results) -> list[Cell]:
    return list(table(results).values()) if results.experiment == "table1" else results.cells


def _condition(cell: Cell, results: Results) -> str:
    if results.experiment == "table1":
        return label((cell.condition["kind"], cell.condition["up"]))
    return ", ".join(f"{name} {value}" for name, value in cell.condition.items())


def _gaps(results: Results) -> list[str]:
    """Where seeds have no value, and how many requests were repeated to get one."""
    stalled: dict[str, list[str]] = {}
    repeated: dict[str, list[str]] = {}
    for cell in _ordered(results):
        where, missing = _condition(cell, results), cell.accuracy.count(None)
        if missing:
            part = "" if missing == len(cell.accuracy) else f", {missing} of {len(cell.accuracy)} seeds"
            when = cell.status.removeprefix("stalled at ")
            stalled.setdefault(cell.strategy, []).append(f"{where} ({when}{part})")
        if cell.requests_repeated:
            repeated.setdefault(cell.strategy, []).append(f"{where} ({cell.requests_repeated:,})")
    sentences = [f"{_NOTHING}: {strategy} stalled in {', '.join(where)}." for strategy, where in stalled.items()]
    sentences += [f"Requests that {strategy} repeated: {', '.join(where)}." for strategy, where in repeated.items()]
    return sentences


def _as_markdown(shown: Table) -> list[str]:
    lines = [f"## {shown.title}", "", shown.note, ""]
    lines.append(f"| strategy | {' | '.join(' '.join(filter(None, head)) for head in shown.heads)} |")
    lines.append("| --- |" + " --- |" * len(shown.heads))
    for name, cells in shown.rows:
        lines.append(f"| {name} | {' | '.join(_cell(cell) for cell in cells)} |")
    return [*lines, ""]


def _cell(shown: Shown) -> str:
    text = f"**{shown.text}**" if shown.strong else shown.text
    rest = f"({shown.rest})" if shown.verdict else shown.rest
    return " ".join(filter(None, [text, rest, shown.mark])).replace("|", "\\|")


def _paragraph(sentences: list[str]) -> list[str]:
    return [" ".join(sentences), ""] if sentences else []
