"""An audit as people read it: audit.md, audit.html and its figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dvfl.audit.pages.leak_figure import leak_against_accuracy
from dvfl.audit.pages.summary import answered, figure, knew, lines
from dvfl.audit.pages.templating import rendered
from dvfl.audit.pages.verdict import verdict
from dvfl.audit.recordings.findings import UNDEFENDED, Finding
from dvfl.audit.recordings.measured import Measured
from dvfl.release.accounting import DELTA, as_plain, release_epsilon

_PLOTTED = (
    ("inversion", 50, "a guest's columns that a host reconstructs\nwith 50 known people, share of variance"),
    ("inversion", 1000, "a guest's columns that a host reconstructs\nwith 1,000 known people, share of variance"),
    ("gradient_labels", None, "labels that a guest tells apart by gradients, AUC"),
)
# Columns of the table of defences: attack, number of known rows, way.
_COLUMNS = (
    ("columns by a host, 50 known", "inversion", 50, ""),
    ("1,000 known", "inversion", 1000, ""),
    ("10,000 known", "inversion", 10_000, ""),
    ("host and guest, 1,000 known", "collusion", 1000, ""),
    ("labels by a host, 10 of each class", "probing", 10, ""),
    ("by a guest's gradients", "gradient_labels", None, ""),
    ("by gradients, 10 of each class", "direct_labels", 10, ""),
    ("by a guest's encoder, 10 of each class", "completion", 10, "average"),
    ("actively", "completion", 10, "inflated"),
    ("columns by predictions, 1,000 known", "predictions", 1000, ""),
    ("membership", "membership", None, ""),
    ("backdoor", "backdoor", None, ""),
)


@dataclass(frozen=True)
class Audit:
    """All that was found, and how."""

    subject: str  # what was audited
    dataset: str
    command: str
    seeds: tuple[int, ...]
    note: str
    findings: Sequence[Finding]
    waiting: Sequence[str] = ()  # federations that could not be had here, and why
    score: str = "accuracy, %"  # what the findings' accuracy is; R2 where labels are numbers

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {name: value for name, value in vars(self).items() if name != "findings"}
        made = {**plain, "seconds": round(self.seconds, 1), "delta": DELTA}
        made |= {"seeds": list(self.seeds), "waiting": list(self.waiting)}
        told = [{**one.as_dict(), "release_epsilon": as_plain(_counted(one))} for one in self.findings]
        return {**made, "findings": told}


def _counted(finding: Finding) -> float | None:
    """Of what is sent of a row, all releases together."""
    return release_epsilon(finding.noise, finding.releases)


def plots(audit: Audit) -> dict[str, str]:
    """Figures by name, as SVG elements."""
    drawn = {
        f"{attack}{f'-{known}' if known else ''}".replace("_", "-"): leak_against_accuracy(
            audit.findings, attack, known, label, f"test {audit.score}"
        )
        for attack, known, label in _PLOTTED
    }
    return {name: svg for name, svg in drawn.items() if svg is not None}


def markdown(audit: Audit) -> str:
    """The audit as text; its figures are files beside it."""
    plain = [one for one in audit.findings if one.defence == UNDEFENDED]
    text = [f"# What leaks: {audit.dataset}", "", *(f"- {name}: {value}" for name, value in facts(audit)), ""]
    text += [*([audit.note, ""] if audit.note else []), "## In short", ""]
    text += [*(f"- {sentence}" for sentence in verdict(audit.findings, audit.score)), ""]
    heads = ["who", "could learn", "with the help of", *(one.strategy for one in plain), "baseline"]
    rows = [[line.who, line.what, line.help, *line.answers, line.baseline] for line in lines(plain)]
    text += [*_table(heads, rows), "", *(f"{sentence}\n" for sentence in WORDS), "## Defences", ""]
    text += [*_table(*defence_table(audit)), "", *(f"- {name}: {words}" for name, words in _explained(audit)), ""]
    for name in plots(audit):
        text += [f"![Leak against accuracy: {name}]({name}.svg)", ""]
    text += ["## Every figure", "", *_table(_HEADS, _figures(audit)), ""]
    return "\n".join(text)


def page(audit: Audit) -> str:
    """The audit on one page that needs nothing but itself."""
    plain = [one for one in audit.findings if one.defence == UNDEFENDED]
    heads, rows = defence_table(audit)
    return rendered(
        "audit.html",
        audit=audit,
        facts=facts(audit),
        strategies=[one.strategy for one in plain],
        sentences=verdict(audit.findings, audit.score),
        lines=lines(plain),
        words=WORDS,
        heads=heads,
        rows=rows,
        explained=_explained(audit),
        plots=[Markup(svg) for svg in plots(audit).values()],
        figure_heads=_HEADS,
        figures=_figures(audit),
    )


WORDS = (
    "A share of variance of 0% is what the mean of all rows gives, 100% is every value to the digit. Labels that are"
    " named right count so that every class weighs the same, however rare: a guess has 50% of two classes, 10% of ten."
    " Of a pair of people one is marked and the other is not; who guesses tells 50 of 100 apart. Tables give that as"
    " the area under the curve, from 0.5 to 1.",
    "Each figure is the strongest of all ways that were tried, the attacker knowing the defence and trained against it;"
    " somebody may find a stronger one. No backward channel means that nothing of labels reaches a guest or a host."
    " It does not mean that nothing can be learned from what is sent forward.",
)


def facts(audit: Audit) -> list[tuple[str, str]]:
    """How, where and how long."""
    return [
        ("audited", audit.subject),
        ("command", f"`{audit.command}`"),
        (
            "seeds",
            str(len(audit.seeds))
            + (" (five or more are right for figures to be quoted)" if len(audit.seeds) < 5 else ""),
        ),
        ("time", f"{audit.seconds:.0f} s of training and attacks"),
        ("machine", _each(one.machine for one in audit.findings)),
        ("versions", _each(one.versions for one in audit.findings)),
        *(("not here", waiting) for waiting in audit.waiting),
    ]


def _each(facts: Iterable[Mapping[str, str]]) -> str:
    """Every one that findings differ in, once."""
    told = (", ".join(f"{name} {value}" for name, value in fact.items()) for fact in facts)
    return "; ".join(dict.fromkeys(told))


def defence_table(audit: Audit) -> tuple[list[str], list[list[str]]]:
    """Accuracy and the strongest attack of each kind for which somebody has a channel, federation by federation."""
    used = [column for column in _COLUMNS if any(_channel(answered(one, *column[1:])) for one in audit.findings)]
    rows = []
    for one in audit.findings:
        cells = [answered(one, *column[1:]) for column in used]
        shown = ["" if cell is None else figure(cell) if cell.channel else "no channel" for cell in cells]
        rows.append([one.name, f"{one.mean:.{3 if audit.score == 'R2' else 2}f}", _epsilon(one), *shown])
    return ["", audit.score, f"epsilon at delta {DELTA:g}", *(name for name, *_ in used)], rows


def _channel(one: Measured | None) -> bool:
    return one is not None and one.channel


def _epsilon(one: Finding) -> str:
    if one.epsilon is not None:
        return f"{one.epsilon:g} (encoders' training)"
    if not one.noise:
        return "none"
    value = _counted(one)
    times = f", {one.releases} releases" if one.releases > 1 else ""
    if value is None:
        return "needs dvfl[privacy]"
    return f"{value:.4g}{times}" if value < math.inf else f"beyond counting{times}"


def _explained(audit: Audit) -> list[tuple[str, str]]:
    return [(one.name, one.words) for one in audit.findings if one.defence != UNDEFENDED]


_HEADS = ["federation", "attack", "way", "who", "saw", "knew", "measure", "mean", "2 sigma", "instead of encodings"]


def _figures(audit: Audit) -> list[list[str]]:
    return [_row(finding, one) for finding in audit.findings for one in finding.figures]


def _row(finding: Finding, one: Measured) -> list[str]:
    spread = 2 * (sum((v - one.mean) ** 2 for v in one.values) / max(1, len(one.values) - 1)) ** 0.5
    digits = 3 if one.measure in ("R2", "AUC") else 2
    mean = f"{one.mean:.{digits}f}" if one.channel else f"{one.mean:.{digits}f} (no channel)"
    attack = one.attack.replace("_", " ")
    return [
        finding.name,
        attack,
        one.way,
        one.who,
        one.saw,
        knew(one),
        one.measure,
        mean,
        f"{spread:.{digits}f}",
        one.control,
    ]


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    text = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return text + ["| " + " | ".join(row) + " |" for row in rows]
