"""What is shown of an experiment: Table 1 and times in their own ways, the others as grids."""

from dataclasses import dataclass
from typing import Any

from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.pages import grid
from dvfl.reproduce.pages import table1_findings as comparison
from dvfl.reproduce.pages.curves import grid_inline
from dvfl.reproduce.pages.table1_figure import table1_inline
from dvfl.reproduce.pages.table1_page import STATISTICS, table1_tables
from dvfl.reproduce.pages.text_tables import Table
from dvfl.reproduce.pages.time_page import STATISTICS as TIMES
from dvfl.reproduce.pages.time_page import time_findings, time_inline, time_tables
from dvfl.reproduce.paper import EXPERIMENTS


@dataclass(frozen=True)
class Presentation:
    """One experiment's part of a report."""

    title: str
    tables: list[Table]
    findings: dict[str, list[str]]  # sentences by heading
    figure: str  # an SVG element
    statistics: str
    cells: list[tuple[Cell, str]]  # with a name for the condition
    comparisons: list[dict[str, Any]]  # as the results file has them


def presentation(results: Results) -> Presentation:
    """Of any results."""
    experiment = EXPERIMENTS[results.experiment]
    if experiment.measured:
        names = [(cell, cell.condition["quantity"]) for cell in results.cells]
        tables, said = time_tables(results), time_findings(results)
        return Presentation(experiment.title, tables, said, time_inline(results), TIMES, names, [])
    if experiment.grid is None:
        named = [(cell, comparison.label(column)) for (_, column), cell in comparison.table(results).items()]
        return Presentation(
            experiment.title,
            table1_tables(results),
            comparison.findings(results),
            table1_inline(results),
            STATISTICS,
            named,
            comparison.plain_comparisons(results),
        )
    layout = experiment.grid
    return Presentation(
        experiment.title,
        grid.grid_tables(experiment, layout, results),
        grid.grid_findings(experiment, results),
        grid_inline(layout, results),
        grid.STATISTICS,
        [(cell, f"{layout.row(cell)}, {layout.column(cell)}") for cell in results.cells],
        grid.plain_contrasts(experiment, results),
    )


def standing_alone(inline: str) -> str:
    """A figure as a file of its own, dark on white."""
    svg = inline.replace("<svg ", '<svg color="#1b1f24" ', 1)
    inside = svg.index(">") + 1
    white = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg[:inside]}{white}{svg[inside:]}\n'
