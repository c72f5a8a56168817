"""For people who do not read tables: who could learn what, with which help, how well, against which baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from dvfl.privacy.findings import Finding
from dvfl.privacy.measured import Measured


@dataclass(frozen=True)
class Question:
    """One thing that somebody could learn."""

    attack: str
    who: str
    what: str
    asks: str  # the figure, as a question
    known: tuple[int, ...] = ()  # numbers of known rows to tell of; () where there is one alone
    way: str = ""  # of the attack's ways, where not all are meant
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
    Question("gradient_labels", "a guest", "people's labels, from feedback", "told apart (0.5: a guess)", least=0.5),
    Question("direct_labels", "a guest", "people's labels, from feedback", "right", (10,)),
    Question("completion", "a guest", "people's labels, from its own columns", "right", (10,), "average"),
    Question("completion", "a guest that trains for it", "people's labels", "right", (10,), "first guest, inflated"),
    Question("probing", "a host", "people's labels, from encodings", "right", (1, 10)),
    Question("inversion", "a host", "a guest's columns, from encodings", "of their variance", (50, 1000), least=0.0),
    Question("collusion", "a host and a guest together", "another guest's columns", "of their variance", (50, 1000)),
    Question("predictions", "who sees predictions", "a guest's columns", "of their variance", (1000,), least=0.0),
    Question("membership", "who sees predictions", "who was trained on", "told apart (0.5: a guess)", least=0.5),
    Question("backdoor", "a guest", "to turn predictions its way", "of rows turned"),
)


def lines(findings: Sequence[Finding]) -> list[Line]:
    """A row for every question that the findings answer, with an answer of each."""
    made = []
    for question in QUESTIONS:
        for known in question.known or (None,):
            found = [answered(one, question.attack, known, question.way) for one in findings]
            first = next((one for one in found if one is not None), None)
            if first is None:
                continue
            answers = tuple(_answer(one, question) for one in found)
            made.append(
                Line(question.who, question.what, _help(first), answers, _baseline(findings[0], question, first))
            )
    return made


def answered(finding: Finding, attack: str, known: int | None, way: str = "") -> Measured | None:
    """The figure that counts."""
    if attack == "collusion" and known is not None:
        return finding.together(known)
    return finding.strongest(attack, known, way=way)


def figure(one: Measured) -> str:
    """A value as people read it."""
    if one.measure == "accuracy":
        return f"{one.mean:.1f}\N{NO-BREAK SPACE}%"
    if one.measure == "R2":
        return f"{max(0.0, one.mean):.0%}"
    return f"{one.mean:.2f}"


def _answer(one: Measured | None, question: Question) -> str:
    if one is None:
        return "does not apply"
    if not one.channel:
        return (
            f"nothing to look at (a guess: {figure(one)})"
            if one.measure != "accuracy"
            else f"no more than {figure(one)}"
        )
    return f"{figure(one)} {question.asks}"


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
    """What the same attacker gets without what was sent, or by a guess."""
    for control, words in (("raw features", "raw columns in place of encodings"), ("nothing seen", "without it")):
        found = finding.strongest(question.attack, first.known, control, question.way)
        if found is not None:
            text = f"{words}: {figure(found)}"
            random = finding.strongest(question.attack, first.known, "random encoder", question.way)
            return f"{text}; untrained encoders: {figure(random)}" if random is not None else text
    if question.least is None:
        return ""
    return f"a guess: {question.least:.2f}" if first.measure == "AUC" else "knowing nothing: 0%"
