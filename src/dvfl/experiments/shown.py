"""Tables as text, before they are Markdown or a page."""

import itertools
from dataclasses import dataclass

NOTHING = "N/A"
MARKS = {"ahead": "▲", "behind": "▼", "level": ""}


@dataclass(frozen=True)
class Shown:
    """A table's cell as text: the number, its spread or interval, and whether it stands out."""

    text: str
    rest: str = ""
    strong: bool = False
    verdict: str = ""

    @property
    def mark(self) -> str:
        return MARKS.get(self.verdict, "")


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
