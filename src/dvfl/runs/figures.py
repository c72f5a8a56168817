"""Pictures of a run as text for a page: SVG that takes the page's ink, so that it reads in light and dark alike."""

import base64
import io
import re
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

# Okabe and Ito's colours, told apart by colour-blind readers too; without black and yellow, which one theme swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_INK = "#010203"  # stands for the page's ink until the figure is text
_LABEL_HEIGHT = 0.085  # of an axis
_POINTS = 1000


def loss_curves(history: dict[str, Any], classifies: bool) -> list[str]:
    """Every party's loss by epoch, a figure a role: the mean over seeds, and the range of the seeds as a band.

    The owner's held-out rows are scored, not trained on, so they have a figure and a scale of their own.
    """
    roles = [("Guests", history["guests"]), ("Hosts", history["hosts"]), ("Owner", {"training": history["owner"]})]
    drawn = [_curves(title, _arrays(curves), logarithmic=True) for title, curves in roles if curves]
    if history["held_out_score"]:
        score = _arrays({"held out": history["held_out_score"]})["held out"]
        title = "Owner, held-out rows: accuracy, %" if classifies else "Owner, held-out rows: squared error"
        drawn.append(_curves(title, {"held out": score * 100 if classifies else -score}, logarithmic=not classifies))
    return drawn


def predicted_against_true(predicted: NDArray[Any], truth: NDArray[Any]) -> str:
    """Predictions of the first seed over the true values; the line is where both are equal."""
    chosen = np.linspace(0, len(truth) - 1, min(_POINTS, len(truth))).astype(int)
    figure, axis = _figure(4.4, 4.0)
    x, y = truth[chosen], predicted[0, chosen]
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    axis.plot(ends, ends, color=_INK, linewidth=0.8, alpha=0.6)
    axis.scatter(x, y, s=12, color=COLOURS[0], alpha=0.6, linewidths=0)
    axis.set_xlabel("true value")
    axis.set_ylabel("predicted")
    return _svg(figure, "fit")


def png(image: NDArray[np.float32]) -> str:
    """An image of values in [0, 1], drawn as ink on paper, as a data address."""
    stream = io.BytesIO()
    imsave(stream, image, vmin=0, vmax=1, cmap="gray_r", format="png")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def flow_diagram(
    guests: list[str], hosts: int, first: str, second: str, *, last: str = "owner", back: bool = False
) -> str:
    """Who sends to whom, from the guests at the top down to the owner, or whoever is `last`; `back`: and up again."""
    rows = [(_few(guests), COLOURS[0])]
    if hosts:
        rows.append((_few([f"host-{number + 1}" for number in range(hosts)]), COLOURS[2]))
    rows.append(([last], COLOURS[1]))
    width, box, gap = 460, 30, 92
    shapes, places = [], []
    for level, (names, colour) in enumerate(rows):
        top, each = level * (box + gap) + 1, min(100.0, (width - 8) / len(names) - 8)
        centres = [width / 2 + (number - (len(names) - 1) / 2) * (each + 8) for number in range(len(names))]
        places.append(centres)
        for name, centre in zip(names, centres, strict=True):
            if name == "…":
                shapes.append(f'<text x="{centre:.1f}" y="{top + 19}" text-anchor="middle">…</text>')
                continue
            shapes.append(
                f'<rect x="{centre - each / 2:.1f}" y="{top}" width="{each:.1f}" height="{box}" rx="5" fill="{colour}"'
                f' fill-opacity="0.18" stroke="{colour}"/>'
                f'<text x="{centre:.1f}" y="{top + 19}" text-anchor="middle">{_escaped(_short(name, each))}</text>'
            )
    start = ' marker-start="url(#tip)"' if back else ""
    for level, label in enumerate((first, second)[: len(rows) - 1]):
        top, bottom = level * (box + gap) + box + 3, (level + 1) * (box + gap) - 3
        lines = [
            f'<line x1="{x:.1f}" y1="{top}" x2="{u:.1f}" y2="{bottom}" marker-end="url(#tip)"{start}/>'
            for x in places[level]
            for u in places[level + 1]
        ]
        shapes.append(f'<g stroke="currentColor" stroke-opacity="0.35">{"".join(lines)}</g>')
        shapes.append(f'<text class="on-arrow" x="{width / 2}" y="{(top + bottom) / 2 + 4}">{_escaped(label)}</text>')
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    tip += ' orient="auto-start-reverse">'
    tip += '<path d="M0 0L8 4L0 8z" fill="currentColor" fill-opacity="0.6"/></marker>'
    height = len(rows) * box + (len(rows) - 1) * gap + 2
    name = f"guests to {'hosts to ' if hosts else ''}{last}{', and back' if back else ''}"
    opening = f'<svg class="flow" viewBox="0 0 {width} {height}" role="img" aria-label="{name}">'
    return f"{opening}<defs>{tip}</defs>{''.join(shapes)}</svg>"


def _arrays(curves: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Curves (seeds, epochs) by name; more than can be told apart are one crowd."""
    arrays = {name: np.array(curve, float) for name, curve in curves.items()}
    if len(arrays) <= len(COLOURS):
        return arrays
    return {f"{len(arrays)} parties": np.concatenate(list(arrays.values()))}


def _curves(title: str, arrays: dict[str, NDArray[np.float64]], logarithmic: bool) -> str:
    """One line each with its name at its end."""
    figure, axis = _figure(4.4, 3.0)
    axis.set_title(title, loc="left", fontsize=11)
    axis.set_xlabel("epoch", fontsize=9)
    ends = []
    for colour, (name, curve) in zip(COLOURS, arrays.items(), strict=False):
        epochs = np.arange(1, curve.shape[1] + 1)
        known = np.isfinite(curve).all(0)
        mean = np.where(known, curve.mean(0), np.nan)
        axis.plot(epochs, mean, color=colour, linewidth=1.6, marker="o" if len(epochs) == 1 else "")
        if len(curve) > 1:
            axis.fill_between(epochs, curve.min(0), curve.max(0), color=colour, alpha=0.18, linewidth=0)
        if known.any():
            ends.append((float(mean[known][-1]), name, colour))
    if logarithmic:
        _logarithmic(axis, np.concatenate([curve[np.isfinite(curve)] for curve in arrays.values()]))
    _label_ends(axis, sorted(ends))
    return _svg(figure, re.sub("[^a-z]+", "-", title.lower()))


def _logarithmic(axis: Axes, values: NDArray[np.float64]) -> None:
    """A logarithmic scale where values can stand on one and span a factor of ten, with ticks read as numbers."""
    if not len(values) or values.min() <= 0 or values.max() < 10 * values.min():
        return
    axis.set_yscale("log")
    wide = values.max() / values.min() > 300
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_locator(NullLocator())


def _label_ends(axis: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Names beside the lines' ends, in rising order, pushed apart where they would cover each other."""
    axis.autoscale_view()
    low, high = (axis.transScale.transform((1, limit))[1] for limit in axis.get_ylim())
    heights = [(axis.transScale.transform((1, end))[1] - low) / (high - low or 1) for end, _, _ in ends]
    for _ in range(100):
        for lower in range(len(heights) - 1):
            short = _LABEL_HEIGHT - (heights[lower + 1] - heights[lower])
            if short > 0:
                heights[lower] -= short / 2
                heights[lower + 1] += short / 2
    for (_, name, colour), height in zip(ends, heights, strict=True):
        place = (1.02, height)
        axis.text(*place, _short(name, 120), transform=axis.transAxes, color=colour, va="center", fontsize=9)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axis = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=_INK, labelsize=9)
    for part in (axis.xaxis.label, axis.yaxis.label, axis.title):
        part.set_color(_INK)
    for spine in axis.spines.values():
        spine.set_color(_INK)
        spine.set_alpha(0.5)
    return figure, axis


def _svg(figure: Figure, name: str) -> str:
    """The figure as an SVG element; `name` keeps its ids apart from those of other figures on the page."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return text.replace(_INK, "currentColor").replace("<svg ", f'<svg class="figure {name}" ', 1)


def _few(names: list[str]) -> list[str]:
    return names if len(names) <= 5 else [*names[:3], "…", names[-1]]


def _short(name: str, width: float) -> str:
    """A name that fits into so many pixels."""
    most = max(4, int(width / 7.2))
    return name if len(name) <= most else name[: most - 1] + "…"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
