"""The experiment on time as people read it: seconds of every role, and what a guest's process consists of."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dvfl.reproduce.outcome.results import Results
from dvfl.reproduce.pages.text_tables import Shown, Table, number
from dvfl.reproduce.paper.time import EPOCHS, OWN_PROCESS, PROCESS
from dvfl.runs import figures

STATISTICS = (
    "Every figure is the median of five repeats of twenty rounds after a warm-up, times the rounds of an epoch: one"
    " party's own process, its data in place; on a CPU the process's own time on one core, on a GPU seconds by the"
    " clock. Forward includes the loss, backward the optimiser's step. Waiting is what the labels' holder takes to"
    " answer; nothing is counted for the network, and altered copies are made beforehand, as in the paper. A guest's"
    f" process lives for {EPOCHS} epochs, as in the paper, whose figures are {EPOCHS} times their parts for every"
    " strategy; the last line has the epochs of each strategy's own preset."
)
_PARTS = ("guest forward", "guest waiting", "guest backward")
Value = Callable[[str, str], float | None]  # of a strategy's quantity


def time_tables(results: Results) -> list[Table]:
    """Ours, the paper's, and both as parts of SplitNN's."""
    strategies, quantities = _names(results)
    heads = [("", strategy) for strategy in strategies]

    def rows(value: Value, digits: int) -> list[tuple[str, list[Shown]]]:
        made = []
        for quantity in quantities:
            shown = [value(strategy, quantity) for strategy in strategies]
            made.append((quantity, [Shown("" if one is None else number(one, digits)) for one in shown]))
        return made

    ours, papers = _value(results, "seconds"), _value(results, "paper_seconds")
    note = "Seconds an epoch; of the process, seconds in all."
    lines = (
        (f"ours, {EPOCHS} epochs each", ours, PROCESS),
        (f"the paper's, {EPOCHS} epochs each", papers, PROCESS),
        ("ours, each strategy's own epochs", ours, OWN_PROCESS),
    )
    alive = [
        (name, [Shown(f"{(value(one, what) or 0) / (value('splitnn-wait', what) or 1):.2f}") for one in strategies])
        for name, value, what in lines
    ]
    ratio = "How long a guest must be alive, SplitNN's guest being 1. Ratios can be compared across machines."
    return [
        Table("Ours", note, heads, rows(ours, 3), corner="seconds"),
        Table("A guest's process", ratio, heads, alive, corner="part of SplitNN's"),
        Table("The paper's", f"{note} A laptop's CPU (Apple M2).", heads, rows(papers, 3)[:-1], corner="seconds"),
    ]


def time_findings(results: Results) -> dict[str, list[str]]:
    """Sentences made from the numbers."""
    value = _value(results, "seconds")
    said = []
    for what, epochs in ((PROCESS, f"over {EPOCHS} epochs"), (OWN_PROCESS, "over its preset's epochs")):
        split = value("splitnn-wait", what) or 0.0
        for strategy in ("dvfl", "dvfl, SimCLR"):
            alive = value(strategy, what) or 0.0
            said.append(
                f"A guest of {strategy} is alive for {number(alive)} s {epochs}, one of SplitNN for {number(split)} s."
            )
    waiting, forward = (value("splitnn-wait", name) or 0.0 for name in ("guest waiting", "guest forward"))
    said.append(
        f"In an epoch SplitNN's guest computes forward for {number(forward, 3)} s and waits {number(waiting, 3)} s."
    )
    return {
        "What the times say": said,
        "What to know": [
            "Machines differ, so seconds do not compare with the paper's.",
            "The paper trains SimCLR without hosts and has times of hosts for it all the same; ours are those of a host"
            " with that objective.",
        ],
    }


def time_inline(results: Results) -> str:
    """What a guest's process consists of, ours and the paper's, each as part of SplitNN's whole."""
    figure = Figure(figsize=(8.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axis, title, name in ((left, "ours", "seconds"), (right, "the paper's", "paper_seconds")):
        _bars(axis, title, results, _value(results, name))
    left.invert_yaxis()  # the right one goes with it
    handles, labels = left.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncol=3, frameon=False, fontsize=9, labelcolor=figures._INK
    )
    return figures._svg(figure, "time")


def _bars(axis: Axes, title: str, results: Results, value: Value) -> None:
    ink = figures._INK
    strategies, _ = _names(results)
    whole = value("splitnn-wait", PROCESS) or 1.0
    left = np.zeros(len(strategies))
    for part, colour in zip(_PARTS, figures.COLOURS, strict=False):
        seconds = np.array([value(strategy, part) or 0.0 for strategy in strategies])
        each = np.array([sum(value(strategy, one) or 0.0 for one in _PARTS) for strategy in strategies])
        process = np.array([value(strategy, PROCESS) or 0.0 for strategy in strategies])
        width = seconds / each * process / whole
        axis.barh(strategies, width, left=left, color=colour, height=0.6, label=part.removeprefix("guest "))
        left += width
    style: dict[str, Any] = {"color": ink, "fontsize": 9, "va": "center"}
    for place, end in enumerate(left):
        axis.text(end + 0.02 * left.max(), place, f"{end:.2f}", **style)
    axis.set_xlim(0, 1.15 * left.max())
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.spines["left"].set_alpha(0.5)
    axis.tick_params(colors=ink, labelsize=9, length=0)
    axis.set_xticks([])
    axis.set_title(title, fontsize=10, color=ink, loc="left")
    axis.set_xlabel(f"a guest's process, {EPOCHS} epochs, SplitNN's = 1", fontsize=9, color=ink)


def _names(results: Results) -> tuple[list[str], list[str]]:
    strategies = list(dict.fromkeys(cell.strategy for cell in results.cells))
    return strategies, list(dict.fromkeys(cell.condition["quantity"] for cell in results.cells))


def _value(results: Results, field: str) -> Value:
    found = {(cell.strategy, cell.condition["quantity"]): cell.fields.get(field) for cell in results.cells}
    return lambda strategy, quantity: found.get((strategy, quantity))
