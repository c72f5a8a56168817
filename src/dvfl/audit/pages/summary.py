"""For people who do not read tables: who could learn what, with which help, how well, against which baseline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dvfl.audit.recordings.findings import Finding
from dvfl.audit.recordings.measured import Measured


@dataclass(frozen=True)
class Question:
    """One thing that somebody could learn."""

    attack: str
    who: str
    what: str
    asks: str  # the figure, as a question
    known: tuple[int, ...] = ()  # numbers of known rows to tell of; () where there is one alone
    way: str = ""  # of the attack's ways, where not all are meant
    passive: str = ""  # the way of one who only looks on, where the question is about one who does more
    least: float | None = None  # what knowing nothing gives


@dataclass(frozen=True)
class Line:
    """One row of the summary."""

    who: str
    what: str
    help: str
    answers: tuple[str, ...]  # of each strategy
    baseline: str


QUESTIONS = (
    Question("gradient_labels", "a guest", "people's labels, from feedback", "told apart", (0, 1), least=0.5),
    Question("direct_labels", "a guest", "people's labels, from feedback", "right", (10,)),
    Question("completion", "a guest", "people's labels, from its own columns", "right", (10,), "average"),
    Question("completion", "a guest that trains for it", "people's labels", "right", (10,), "inflated", "first guest"),
    Question("probing", "a host", "people's labels, from encodings", "right", (1, 10)),
    Question("inversion", "a host", "a guest's columns, from encodings", "of their variance", (50, 1000), least=0.0),
    Question("collusion", "a host and a guest together", "another guest's columns", "of their variance", (50, 1000)),
    Question("predictions", "who sees predictions", "a guest's columns", "of their variance", (1000,), least=0.0),
    Question("membership", "who sees predictions", "who was trained on", "told apart", least=0.5),
    Question("backdoor", "a guest", "to turn predictions its way", "of rows turned"),
)


def lines(findings: Sequence[Finding]) -> list[Line]:
    """A row for every question that the findings answer, with an answer of each."""
    made = []
    for question in QUESTIONS:
        for known in question.known or (None,):
            found = [answered(one, question.attack, known, question.way) for one in findings]
            told = [(finding, one) for finding, one in zip(findings, found, strict=True) if one is not None]
            if not told:
                continue
            # Help and baseline are those of the first federation that the question makes sense for.
            finding, first = next((pair for pair in told if pair[1].channel), told[0])
            baseline = _baseline(finding, question, first) or _guess(one for _, one in told)
            answers = tuple(_answer(one, question) for one in found)
            made.append(Line(question.who, question.what, _help(first), answers, baseline))
    return made


def answered(finding: Finding, attack: str, known: int | None, way: str = "") -> Measured | None:
    """The figure that counts."""
    if attack == "collusion" and known is not None:
        return finding.together(known)
    return finding.strongest(attack, known, way=way)


def pairs(one: Measured) -> str:
    """An area under the curve as people read it: of two people, one marked and one not, how often it is seen which."""
    return f"{one.mean * 100:.0f} of 100 pairs"


def said(one: Measured) -> str:
    """A value in a sentence."""
    return pairs(one) if one.measure == "AUC" else figure(one)


def figure(one: Measured) -> str:
    """A value as tables have it."""
    if one.measure in ("balanced accuracy", "share of rows"):
        return f"{one.mean:.1f}\N{NO-BREAK SPACE}%"
    if one.measure == "R2":
        return f"{max(0.0, one.mean):.0%}"
    return f"{one.mean:.2f}"


def knew(one: Measured) -> str:
    """What an attacker had beside what it saw."""
    if not one.known:
        return "nothing"
    if one.known_of == "labels of each class":
        return f"{one.known:,} label{'s' * (one.known > 1)} of each class"
    return f"{one.known_of} of {one.known:,}"


def _answer(one: Measured | None, question: Question) -> str:
    if one is None:
        return "does not apply"
    if not one.channel:
        instead = "no more than by looking on:" if question.passive else "nothing to look at, a guess:"
        return f"{instead} {said(one)}"
    return f"{said(one)} {question.asks}"


def _help(one: Measured) -> str:
    if one.known_of == "nothing" or not one.known:
        return "none"
    if one.attack == "backdoor":
        return f"{one.known:,} of its own rows, changed"
    if one.attack == "membership":
        return f"{one.known:,} people of whom it is known"
    if one.known_of == "labels of each class":
        return f"the label of {one.known:,} of each class"
    return f"{one.known_of} of {one.known:,} people"


def _baseline(finding: Finding, question: Question, first: Measured) -> str:
    """What the same attacker gets without what was sent, or by a guess; empty where that is not known."""
    if question.passive:
        passive = finding.strongest(question.attack, first.known, way=question.passive)
        return f"looking on: {figure(passive)}" if passive is not None else ""
    for control, words in (("raw features", "raw columns in place of encodings"), ("nothing seen", "without it")):
        found = finding.strongest(question.attack, first.known, control, question.way)
        if found is None and question.attack == "backdoor":
            found = finding.strongest(question.attack, control=control)  # who changes no rows knows of none
        if found is not None:
            text = f"{words}: {figure(found)}"
            random = finding.strongest(question.attack, first.known, "random encoder", question.way)
            return f"{text}; untrained encoders: {figure(random)}" if random is not None else text
    if question.least is None:
        return ""
    return "a guess: 50 of 100 pairs" if first.measure == "AUC" else "knowing nothing: 0%"


def _guess(told: Iterable[Measured]) -> str:
    """What is there for those who have nothing to look at."""
    return next((f"a guess: {said(one)}" for one in told if not one.channel), "")
