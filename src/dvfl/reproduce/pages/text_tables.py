"""Tables as text, before they are Markdown or a page."""

import itertools
from dataclasses import dataclass
from typing import Any

from dvfl.reproduce.outcome.statistics import LEAST_PAIRS, MARGIN, SIGNIFICANT, Judgement, Verdict

NOTHING = "N/A"
UNTOUCHED = "="  # in the place of a number that a column's faults cannot change
UNTOUCHED_NOTE = f"{UNTOUCHED}: these faults do not act on it, and its numbers are those without faults."
MARKS: dict[Verdict, str] = {"ahead": "▲", "behind": "▼", "level": "=", "open": ""}
WORDS: dict[Verdict, str] = {
    "ahead": "ahead of",
    "behind": "behind",
    "level": "level with",
    "open": "not told apart from",
}
APART = 0.4  # points between our mean and the paper's from which a cell is named
TESTS = (
    "Tests leave no seed out, so their differences are those of the unfiltered means. Values are paired by seed; the"
    " interval is that of the mean difference (95 %, Student's t). Two tests ask whether the sides differ: a two-sided"
    " paired t-test, and Wilcoxon's signed-rank test, exact, which no outlier breaks. p is twice the smaller of the"
    " two, adjusted by Holm's rule for all distinct comparisons of the table; where strategies have the same numbers,"
    f" the test counts once. {MARKS['ahead']} ahead and {MARKS['behind']} behind mean adjusted p < {SIGNIFICANT:g}."
    f" {MARKS['level']} level means that the difference is shown to be inside {MARGIN:g} points (two one-sided t-tests,"
    f" adjusted p < {SIGNIFICANT:g}). No mark means open: neither is shown. Intervals are not adjusted. With fewer than"
    f" {LEAST_PAIRS} seeds nothing is tested."
)


@dataclass(frozen=True)
class Shown:
    """A table's cell as text: the number, its spread or interval, and whether it stands out."""

    text: str
    rest: str = ""
    strong: bool = False
    verdict: Verdict | None = None

    @property
    def mark(self) -> str:
        return "" if self.verdict is None else MARKS[self.verdict]


@dataclass(frozen=True)
class Table:
    """A title, a line on how to read it, and rows of cells with their names."""

    title: str
    note: str
    heads: list[tuple[str, str]]  # a group, empty for none, and a name in it
    rows: list[tuple[str, list[Shown]]]
    corner: str = "strategy"  # what rows are

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Every group with its number of columns; none at all where no column has one."""
        groups = [(group, len(list(heads))) for group, heads in itertools.groupby(self.heads, lambda head: head[0])]
        return groups if any(group for group, _ in groups) else []


def judgement_fields(judgement: Judgement) -> dict[str, Any]:
    """What the results file says of a comparison."""
    one = judgement.comparison
    return {
        "difference": one.difference,
        "low": one.low,
        "high": one.high,
        "pairs": one.n,
        "t_p": one.t_p,
        "rank_p": one.rank_p,
        "level_p": one.level_p,
        "adjusted_p": judgement.adjusted_p,
        "adjusted_level_p": judgement.adjusted_level_p,
        "verdict": None if one.p is None else judgement.verdict,
    }


def shown_judgement(judgement: Judgement | None) -> Shown:
    """A difference with its interval, marked where its test says something."""
    if judgement is None:
        return Shown(NOTHING)
    one = judgement.comparison
    return Shown(signed(one.difference), f"{number(one.low)} to {number(one.high)}", verdict=judgement.verdict)


def p_value(value: float | None) -> str:
    """In a table or a sentence."""
    if value is None:
        return "not tested"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def as_markdown(shown: Table) -> list[str]:
    """Lines of text."""
    lines = [f"## {shown.title}", "", shown.note, ""]
    alone = len(shown.groups) == 1  # a group of all columns is named once, in the corner
    heads = [name if alone else " ".join(filter(None, (group, name))) for group, name in shown.heads]
    corner = f"{shown.corner}; {shown.groups[0][0]}" if alone else shown.corner
    lines.append(f"| {corner} | {' | '.join(heads)} |")
    lines.append("| --- |" + " --- |" * len(shown.heads))
    for name, cells in shown.rows:
        lines.append(f"| {name} | {' | '.join(_cell(cell) for cell in cells)} |")
    return [*lines, ""]


def number(value: float, digits: int = 2) -> str:
    """A number with a real minus sign, and no sign on a zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", "\N{MINUS SIGN}")


def signed(value: float, digits: int = 2) -> str:
    """The same with a plus sign."""
    return number(value, digits) if value < 0 or not float(number(value, digits)) else f"+{number(value, digits)}"


def listed(names: list[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _cell(shown: Shown) -> str:
    text = f"**{shown.text}**" if shown.strong else shown.text
    rest = f"({shown.rest})" if shown.verdict and shown.rest else shown.rest
    return " ".join(filter(None, [text, rest, shown.mark])).replace("|", "\\|")
