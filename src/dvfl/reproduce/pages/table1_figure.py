"""Table 1 as one figure: ours filled with 2 sigma, the paper's hollow beside it, what collapsed below a broken axis."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, MultipleLocator

from dvfl.reproduce.outcome.results import Results
from dvfl.reproduce.pages.table1_findings import Column, columns, strategies, table
from dvfl.runs import figures

_COLOURS = (*figures.COLOURS, "#7B61D9", "#8A8F98")
_MARKERS = ("o", "X", "v", "s", "D", "^", "P")  # not as many as colours, so that no two rows share both
_INK = figures._INK
_ZOOM = 3.0  # points below our best mean that the upper panel reaches down to
_COLUMN = 0.84  # of the room between two columns: the part that markers take
_HEADS = {"none": "no faults", "connection": "connections lost", "guest": "guests lost", "host": "hosts lost"}


def table1_inline(results: Results) -> str:
    """The figure as an element of a page, in the page's ink."""
    cells = [cell for cell in table(results).values() if not cell.untouched]
    ours = [cell.mean for cell in cells if cell.mean is not None]
    means = ours + [cell.paper_mean for cell in cells if cell.paper_mean is not None]
    split = math.floor(max(ours or means or [100.0]) - _ZOOM)
    collapsed = [mean for mean in means if mean < split]
    figure = Figure(figsize=(10.4, 6.2 if collapsed else 4.8), layout="constrained")
    figure.get_layout_engine().set(hspace=0.0, h_pad=0.05)  # type: ignore[union-attr,call-arg]
    if collapsed:
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 1))
        upper.set_ylim(split, _top(results))
        room = 0.12 * (split - min(collapsed))
        lower.set_ylim(min(collapsed) - room, split + room)
        axes = [upper, lower]
    else:
        axes = [figure.subplots()]
        whiskers = [cell.mean - (cell.two_sigma or 0) for cell in cells if cell.mean is not None]
        axes[0].set_ylim(min([*means, *whiskers, 99.0]) - 0.1, _top(results))
    places = _places(columns(results))
    for axis in axes:
        _dress(axis, places)
    _draw(axes, split, results, places)
    if collapsed:
        _break(axes[0], axes[1], split)
    _name_columns(axes[0], axes[-1], places)
    _stalled(axes[-1], results, places)
    figure.supylabel("test accuracy, %", fontsize=9, color=_INK)
    _legend(figure, results)
    return figures._svg(figure, "table1")


def _top(results: Results) -> float:
    """Just above the highest whisker."""
    ours = [cell.mean + (cell.two_sigma or 0) for cell in results.cells if cell.mean is not None]
    papers = [cell.paper_mean for cell in results.cells if cell.paper_mean is not None]
    return max(ours + papers, default=100.0) + 0.1


def _places(drawn: list[Column]) -> dict[Column, float]:
    """Where columns stand: one apart, and a little more between kinds of faults."""
    kinds = list(dict.fromkeys(kind for kind, _ in drawn))
    return {column: number + 0.25 * kinds.index(column[0]) for number, column in enumerate(drawn)}


def _draw(axes: list[Axes], split: float, results: Results, places: dict[Column, float]) -> None:
    """Every mean that faults can change once, in the panel it belongs to."""
    rows = strategies(results)
    slot = _COLUMN / len(rows)
    for (strategy, column), cell in table(results).items():
        row = rows.index(strategy)
        x, style = places[column] + (row - (len(rows) - 1) / 2) * slot, _style(row)
        if cell.mean is not None and not cell.untouched:
            axis, whisker = axes[0 if cell.mean >= split else -1], cell.two_sigma or None
            axis.errorbar(x - slot / 5, cell.mean, whisker, **style, linestyle="", elinewidth=1.1)
        if cell.paper_mean is not None:
            hollow = {**style, "markerfacecolor": "none", "markersize": 4.2}
            axis = axes[0 if cell.paper_mean >= split else -1]
            axis.plot(x + slot / 5, cell.paper_mean, **hollow, linestyle="", alpha=0.75)


def _style(row: int) -> dict[str, Any]:
    """Colour and shape of a strategy, so that either alone tells it from its neighbours."""
    colour = _COLOURS[row % len(_COLOURS)]
    return {"color": colour, "marker": _MARKERS[row % len(_MARKERS)], "markersize": 5.4, "markeredgewidth": 0.9}


def _dress(axis: Axes, places: dict[Column, float]) -> None:
    """Ink, light lines across, and a band behind every other column."""
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.spines["left"].set_color(_INK)
    axis.spines["left"].set_alpha(0.5)
    axis.tick_params(colors=_INK, labelsize=9)
    axis.tick_params(axis="x", length=0)
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(MultipleLocator(0.5) if high - low < 6 else MaxNLocator(nbins=5))
    axis.grid(axis="y", color=_INK, alpha=0.12, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_xlim(min(places.values()) - 0.56, max(places.values()) + 0.56)
    for x in places.values():
        axis.axvspan(x - 0.46, x + 0.46, color=_INK, alpha=0.035, linewidth=0)


def _break(upper: Axes, lower: Axes, split: float) -> None:
    """A line across where the scale changes, and no tick of the lower panel above it."""
    upper.axhline(split, color=_INK, alpha=0.5, linewidth=0.9, linestyle=(0, (6, 4)), clip_on=False)
    place: dict[str, Any] = {
        "xy": (1, 0),
        "xycoords": "axes fraction",
        "xytext": (-4, 4),
        "textcoords": "offset points",
    }
    upper.annotate("the scale changes here", **place, ha="right", fontsize=8, color=_INK, alpha=0.7)
    upper.tick_params(labelbottom=False)
    lower.set_yticks([tick for tick in lower.get_yticks() if lower.get_ylim()[0] <= tick <= split])


def _name_columns(top: Axes, bottom: Axes, places: dict[Column, float]) -> None:
    """R_u beneath the columns, the kind of fault above."""
    bottom.set_xticks(list(places.values()), ["" if up is None else f"R_u {up:g}" for _, up in places])
    for kind in dict.fromkeys(kind for kind, _ in places):
        middle = [x for (other, _), x in places.items() if other == kind]
        where = (sum(middle) / len(middle), 1.01)
        top.text(*where, _HEADS[kind], transform=top.get_xaxis_transform(), ha="center", fontsize=10, color=_INK)


def _stalled(axis: Axes, results: Results, places: dict[Column, float]) -> None:
    """A cross at the bottom where there is no model."""
    rows = strategies(results)
    for (strategy, column), cell in table(results).items():
        if cell.mean is None:
            x = places[column] + (rows.index(strategy) - (len(rows) - 1) / 2) * _COLUMN / len(rows)
            colour = _COLOURS[rows.index(strategy) % len(_COLOURS)]
            axis.plot(x, 0.03, "x", color=colour, markersize=4.5, transform=axis.get_xaxis_transform(), clip_on=False)


def _legend(figure: Figure, results: Results) -> None:
    rows = strategies(results)
    handles = [Line2D([], [], linestyle="", label=name, **_style(row)) for row, name in enumerate(rows)]
    grey: dict[str, Any] = {"linestyle": "", "color": _INK, "alpha": 0.7}
    handles += [
        Line2D([], [], marker="o", label="ours, with 2 sigma", **grey),
        Line2D([], [], marker="o", markerfacecolor="none", label="the paper's", **grey),
    ]
    if any(cell.mean is None for cell in results.cells):
        handles.append(Line2D([], [], marker="x", label="stalled", **grey))
    figure.legend(handles=handles, loc="outside lower center", ncol=6, frameon=False, fontsize=9, labelcolor=_INK)
