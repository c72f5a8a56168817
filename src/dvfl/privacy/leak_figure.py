"""Leak against accuracy, defence by defence."""

from collections.abc import Sequence

from dvfl.experiments import figures
from dvfl.privacy.findings import UNDEFENDED, Finding


def leak_against_accuracy(findings: Sequence[Finding], attack: str, known: int | None, label: str) -> str | None:
    """The strongest attack's figure over test accuracy, a point each with its name; an SVG element.

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
    strategies = list(dict.fromkeys(one.strategy for _, _, one in points))
    above = _above([(x, y) for x, y, _ in points])
    for (x, y, one), up in zip(points, above, strict=True):
        colour = figures.COLOURS[strategies.index(one.strategy) % len(figures.COLOURS)]
        plain = one.defence == UNDEFENDED
        axis.plot(x, y, "s" if plain else "o", color=colour, markersize=7 if plain else 5.5)
        name = one.strategy if plain else one.defence
        place = (6, 4) if up else (6, -12)
        axis.annotate(name, (x, y), xytext=place, textcoords="offset points", color=colour, fontsize=9)
    axis.margins(x=0.16, y=0.12)
    axis.grid(color=figures._INK, alpha=0.12, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_xlabel("test accuracy, %", fontsize=9)
    axis.set_ylabel(label, fontsize=9)
    return figures._svg(figure, f"leak-{attack}-{known or 0}".replace("_", "-"))


def _above(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Whether a point's name stands above it; below, where a neighbour's would cover it."""
    across, up = ([point[axis] for point in points] for axis in (0, 1))
    spans = max(across) - min(across) or 1.0, max(up) - min(up) or 1.0
    made: list[bool] = []
    for number, (x, y) in enumerate(points):
        near = [
            made[other]
            for other in range(number)
            if abs(points[other][0] - x) < 0.15 * spans[0] and abs(points[other][1] - y) < 0.06 * spans[1]
        ]
        made.append(near.count(True) <= near.count(False))
    return made
