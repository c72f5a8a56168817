"""An audit in a few sentences, for those who decide and do not read tables."""

from collections.abc import Sequence

from dvfl.audit.pages.summary import figure, pairs
from dvfl.audit.recordings.findings import UNDEFENDED, Finding

_KNOWN = 50  # people of whom a host knows the columns, who are soon found
_AFFORDABLE = {"accuracy": 1.5, "R2": 0.015}  # what a defence may cost to be recommended
_NOTICED = 0.05  # share of variance that a recommended defence hides at least


def verdict(findings: Sequence[Finding], score: str) -> list[str]:
    """What comes back to guests, what goes forward, and which defence helps; `score` is what accuracies are."""
    plain = [one for one in findings if one.defence == UNDEFENDED]
    told = [*(_back(one) for one in plain), *(_forward(one) for one in plain)]
    told += [_defended(one, findings, score) for one in plain]
    return [sentence for sentence in told if sentence]


def _back(finding: Finding) -> str:
    """What feedback tells a guest."""
    seen = finding.strongest("gradient_labels", 1)
    if seen is None:
        return ""
    if not seen.channel:
        return f"{finding.strategy}: nothing comes back to a guest, so it learns nobody's label from feedback."
    return (
        f"{finding.strategy}: what comes back to a guest tells it people's labels. Knowing one of each class, it tells"
        f" {pairs(seen)} apart (a guess: 50)."
    )


def _forward(finding: Finding) -> str:
    """What encodings tell a host."""
    columns, labels = finding.strongest("inversion", _KNOWN), finding.strongest("probing", 10)
    if columns is None:
        return ""
    told = f"{finding.strategy}: what guests send can be turned back. A host that knows {_KNOWN} people's columns has"
    told += f" {figure(columns)} of the variance of everybody else's{_raw(finding)}."
    if labels is not None:
        told += f" If it also knows ten labels of each class, it names {figure(labels)} of all others."
    return told


def _raw(finding: Finding) -> str:
    raw = finding.strongest("inversion", _KNOWN, "raw features")
    return f" ({figure(raw)} if guests sent their columns as they are)" if raw is not None else ""


def _defended(plain: Finding, findings: Sequence[Finding], score: str) -> str:
    """The defence that hides most of what a host sees and costs little; empty where none was tried."""
    before = plain.strongest("inversion", _KNOWN)
    tried = [(one, one.strongest("inversion", _KNOWN)) for one in findings if one.strategy == plain.strategy]
    known = [(one, left) for one, left in tried if one is not plain and left is not None]
    if before is None or not known:
        return ""
    most = _AFFORDABLE["R2" if score == "R2" else "accuracy"]
    unit = f"{most:g} of R2" if score == "R2" else f"{most:g} points of accuracy"
    worth = [(one, left) for one, left in known if plain.mean - one.mean <= most]
    best, left = min(worth, key=lambda pair: pair[1].mean, default=(None, before))
    if best is None or before.mean - left.mean < _NOTICED:
        return f"{plain.strategy}: of the defences tried, none that costs at most {unit} hides much of that."
    return (
        f"{plain.strategy}: of the defences tried that cost at most {unit}, {best.defence} hides most ({best.words})."
        f" The same host then has {figure(left)}."
    )
