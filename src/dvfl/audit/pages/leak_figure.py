"""Leak against accuracy, defence by defence."""

from collections.abc import Sequence

from dvfl.audit.recordings.findings import UNDEFENDED, Finding
from dvfl.runs import figures


def leak_against_accuracy(
    findings: Sequence[Finding], attack: str, known: int | None, label: str, score: str = "test accuracy, %"
) -> str | None:
    """The strongest attack's figure over the score, a point each with its name; an SVG element.

    The best corner is the lower right. None where fewer than two can be drawn.
    """
    points = []
    for one in findings:
        found = one.strongest(attack, known)
        if found is not None and found.channel:
            points.append((one.mean, max(found.mean, 0.0) if found.measure == "R2" else found.mean, one))
    if len(points) < 2:
        return None
    figure, axis = figures._figure(6.6, 4.2)
    strategies = list(dict.fromkeys(one.strategy for one in findings))  # the same colours in all plots
    names = [one.strategy if one.defence == UNDEFENDED else one.defence for _, _, one in points]
    sides = _sides([(x, y) for x, y, _ in points], names)
    for (x, y, one), name, (across, up) in zip(points, names, sides, strict=True):
        colour = figures.COLOURS[strategies.index(one.strategy) % len(figures.COLOURS)]
        plain = one.defence == UNDEFENDED
        axis.plot(x, y, "s" if plain else "o", color=colour, markersize=7 if plain else 5.5)
        axis.annotate(
            name,
            (x, y),
            xytext=(6 * across, {1: 4, 0: -3.5, -1: -11}[up]),
            textcoords="offset points",
            ha="left" if across > 0 else "right",
            color=colour,
            fontsize=9,
        )
    axis.margins(x=0.16, y=0.12)
    axis.grid(color=figures._INK, alpha=0.12, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_xlabel(score, fontsize=9)
    axis.set_ylabel(label, fontsize=9)
    return figures._svg(figure, f"leak-{attack}-{known or 0}".replace("_", "-"))


def _sides(points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[tuple[int, int]]:
    """Where each point's name stands, to its right or left (1, -1), above, below or beside it (1, -1, 0).

    That is where it covers least so far, and a point rather not.
    """
    across, up = ([point[axis] for point in points] for axis in (0, 1))
    at = [
        ((x - min(across)) / (max(across) - min(across) or 1.0), (y - min(up)) / (max(up) - min(up) or 1.0))
        for x, y in points
    ]
    taken = [(x - 0.01, y - 0.015, x + 0.01, y + 0.015) for x, y in at]  # in parts of the axes, as names are
    sides = []
    for (x, y), name in zip(at, names, strict=True):
        boxes = {side: _box(x, y, name, side) for side in _SIDES}
        best = min(_SIDES, key=lambda side: _covered(boxes[side], taken[: len(at)], taken[len(at) :]))
        taken.append(boxes[best])
        sides.append(best)
    return sides


_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0))
_LETTER, _LINE, _GAP = 0.017, 0.05, 0.012  # width and height of letters, and the distance from their point
_HEAVY = 4.0  # a point that is covered, against as much of a name

Box = tuple[float, float, float, float]  # left, low, right, high


def _box(x: float, y: float, name: str, side: tuple[int, int]) -> Box:
    width = _LETTER * len(name)
    left = x + _GAP if side[0] > 0 else x - _GAP - width
    low = {1: y + _GAP, 0: y - _LINE / 2, -1: y - _GAP - _LINE}[side[1]]
    return left, low, left + width, low + _LINE


def _covered(box: Box, points: Sequence[Box], names: Sequence[Box]) -> float:
    """How much of what is there a name would cover."""
    return _HEAVY * sum(_overlap(box, one) for one in points) + sum(_overlap(box, one) for one in names)


def _overlap(one: Box, other: Box) -> float:
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)
