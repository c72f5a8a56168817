"""A grid of cells as a figure: ours filled with 2 sigma, the paper's hollow, a name at the end of every line."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dvfl.reproduce.outcome.experiment import Grid
from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.pages.grid import laid_out
from dvfl.runs import figures

_MARKERS = ("o", "s", "D", "^", "v")  # not as many as colours, so that no two rows share both
_DODGE = 0.5  # of the room between two names: the part that markers take
_LABEL = 0.055  # of the axis: the least distance between two names


def grid_inline(grid: Grid, results: Results) -> str:
    """The figure as an element of a page, in the page's ink."""
    rows, columns, cells = laid_out(grid, results)
    figure = Figure(figsize=(8.2, 4.2), layout="constrained")
    axis = figure.subplots()
    places = _places(grid, columns, cells)
    for number, row in enumerate(rows):
        own = [(places[column], cells[row, column]) for column in columns if (row, column) in cells]
        _series(axis, own, number, len(rows), grid.at is not None)
    _dress(axis, grid, columns, places)
    if grid.at is not None and len(rows) > 1:
        _name_lines(axis, rows, columns, cells, places)
    _legend(figure, rows if grid.at is None else [], results)
    return figures._svg(figure, results.experiment)


def _places(grid: Grid, columns: list[str], cells: dict[tuple[str, str], Cell]) -> dict[str, float]:
    """Where columns stand: on their scale, or one after the other."""
    if grid.at is None:
        return {column: float(number) for number, column in enumerate(columns)}
    return {column: grid.at(cell) for (_, column), cell in cells.items()}


def _series(axis: Axes, own: list[tuple[float, Cell]], number: int, count: int, joined: bool) -> None:
    shift = 0.0 if joined else _DODGE * ((number + 0.5) / count - 0.5)
    beside = 0.0 if joined else 0.2 * _DODGE / count  # the paper's, so that equal figures are both seen
    style = _style(number)
    ours = [
        (x + shift - beside, cell.mean, cell.two_sigma or 0.0)
        for x, cell in own
        if cell.mean is not None and not cell.untouched
    ]
    papers = [(x + shift + beside, cell.paper_mean) for x, cell in own if cell.paper_mean is not None]
    if ours:
        x, mean, whisker = (np.array(values) for values in zip(*ours, strict=True))
        axis.errorbar(x, mean, whisker, **style, linestyle="-" if joined else "", linewidth=1.6, elinewidth=1.1)
    if papers:
        x, mean = (np.array(values) for values in zip(*papers, strict=True))
        hollow = {**style, "markerfacecolor": "none"}
        axis.plot(x, mean, **hollow, linestyle=(0, (4, 3)) if joined else "", linewidth=0.9, alpha=0.8)


def _dress(axis: Axes, grid: Grid, columns: list[str], places: dict[str, float]) -> None:
    ink = figures._INK
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(ink)
    axis.spines[["left", "bottom"]].set_alpha(0.5)
    axis.tick_params(colors=ink, labelsize=9)
    axis.grid(axis="y", color=ink, alpha=0.12, linewidth=0.6)
    axis.set_axisbelow(True)
    at = [places[column] for column in columns]
    if grid.logarithmic:
        axis.set_xscale("log")
        axis.minorticks_off()
    axis.set_xticks(at, [_folded(column) for column in columns])
    if grid.at is None:
        axis.set_xlim(-0.6, len(columns) - 0.4)
    axis.set_xlabel(grid.axis, fontsize=9, color=ink)
    axis.set_ylabel("test accuracy, %", fontsize=9, color=ink)


def _name_lines(
    axis: Axes, rows: list[str], columns: list[str], cells: dict[tuple[str, str], Cell], places: dict[str, float]
) -> None:
    """Every line's name at its right end, moved apart where they would touch."""
    low, high = axis.get_ylim()
    ends: list[tuple[float, int, str]] = []
    for number, row in enumerate(rows):
        own = [(places[column], cells[row, column].mean) for column in columns if (row, column) in cells]
        known = [(x, mean) for x, mean in own if mean is not None]
        if known:
            ends.append(((max(known)[1] - low) / (high - low), number, row))
    height = -1.0
    for wanted, number, row in sorted(ends):
        height = max(wanted, height + _LABEL)
        colour = _style(number)["color"]
        axis.text(1.01, height, row, transform=axis.transAxes, color=colour, fontsize=9, va="center")


def _style(number: int) -> dict[str, Any]:
    """Colour and shape of a series, so that either alone tells it from its neighbours."""
    colour, marker = figures.COLOURS[number % len(figures.COLOURS)], _MARKERS[number % len(_MARKERS)]
    return {"color": colour, "marker": marker, "markersize": 5.6, "markeredgewidth": 1.0}


def _legend(figure: Figure, rows: list[str], results: Results) -> None:
    handles = [Line2D([], [], linestyle="", label=row, **_style(number)) for number, row in enumerate(rows)]
    grey: dict[str, Any] = {"linestyle": "", "color": figures._INK, "alpha": 0.7, "marker": "o"}
    handles.append(Line2D([], [], label="ours, with 2 sigma", **grey))
    if any(cell.paper_mean is not None for cell in results.cells):
        handles.append(Line2D([], [], markerfacecolor="none", label="the paper's", **grey))
    figure.legend(
        handles=handles, loc="outside lower center", ncol=6, frameon=False, fontsize=9, labelcolor=figures._INK
    )


def _folded(name: str) -> str:
    """A long name on two lines."""
    return name.replace(", ", ",\n")
