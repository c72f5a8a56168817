"""`dvfl audit` of a run: attacks on it, on the other kind of federation beside it, and on both with every defence.

Each attack's figures are a file of their own, so that an audit that was stopped goes on where it was.
"""

import functools
import importlib.util
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dvfl.audit.attacks import backdoor, completion
from dvfl.audit.attacks.registry import ATTACKS
from dvfl.audit.defences import Defence, chosen
from dvfl.audit.dp_cases import dp_recorded, keep_encoders
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.cases import Case, Training, controls
from dvfl.audit.recordings.findings import UNDEFENDED, Finding
from dvfl.audit.recordings.measured import Measured, of_earlier_releases
from dvfl.audit.recordings.recorder import recorded
from dvfl.audit.recordings.recording import Recording
from dvfl.errors import UserError
from dvfl.files import write_json
from dvfl.reproduce.workers import machine
from dvfl.runs.run_folder import versions
from dvfl.settings.training import AnySettings, Settings
from dvfl.simulation.cpu_threads import suited
from dvfl.strategies import STRATEGIES

PARTS = "parts"
_ABOUT = "about"
_NOTE = "audit.note"  # what it was begun with
_FORMAT = 5
_OTHERS = {  # what an audit is of, in words
    "format": "another version of dvfl audit",
    "run": "a run on other data",
    "settings": "a run with other settings",
    "seeds": "a run with other seeds",
    "effort": "other attackers (--small, --known)",
}
# What an attacker does while a federation trains.
_ACTIVE = ("completion, active", "backdoor")


@dataclass(frozen=True)
class Trained:
    """A federation that can be attacked."""

    case: Case
    scores: tuple[float, ...]  # test accuracy of each seed
    recording: Recording
    training: Training | None  # with what attackers do meanwhile beside it; None where it was trained before, alone
    backdoor: Sequence[Measured] = ()  # where that was looked at already


@dataclass(frozen=True)
class Subject:
    """One federation to attack, trained when it is first needed."""

    strategy: str
    defence: str
    words: str
    make: Callable[[], Trained]
    epsilon: float | None = None  # of the encoders' training
    needs: str = ""  # a package without which it is left for another time ..
    kept: Path | None = None  # .. unless this file has what is made with it ..
    prepare: Callable[[], None] | None = None  # .. by this

    @property
    def name(self) -> str:
        return f"{self.strategy}, {self.defence}"


class Watcher:
    """Is told what begins; this one does not mind."""

    def subject(self, number: int, count: int, name: str) -> None:
        """Another federation."""

    def attack(self, name: str) -> None:
        """Another attack on it."""

    def waits(self, name: str, package: str) -> None:
        """A federation that cannot be had without a package."""


class AuditFolder:
    """Finished parts of an audit.

    It must go on with what it was begun with; settings that were not there yet when it was are `usual` ones.
    """

    def __init__(self, path: Path, about: dict[str, Any], usual: Mapping[str, Any] | None = None) -> None:
        self._path = path / PARTS
        note = self._path / _NOTE
        about, usual = json.loads(json.dumps([{"format": _FORMAT, **about}, usual or {}]))  # as they will be read
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            before = _read(note) if note.is_file() else about
            before["settings"] = {**usual, **before.get("settings", {})}
            for name, value in about.items():
                if before.get(name) != value:
                    raise UserError(f"--out {path} was begun with {_OTHERS[name]}; another --out keeps both")
            write_json(note, about)
        except OSError as error:
            raise UserError(f"--out {path} cannot be written ({error.strerror}); another place is right") from error

    @staticmethod
    def begun(path: Path) -> bool:
        """Whether an audit has left something there."""
        return (path / PARTS / _NOTE).is_file()

    def read(self, subject: str, part: str) -> Any:
        """A finished part; None where it is not."""
        file = self._file(subject, part)
        return _read(file) if file.is_file() else None

    def has(self, subject: str) -> bool:
        """Whether something of a subject is there."""
        return self._file(subject, _ABOUT).is_file()

    def write(self, subject: str, part: str, value: Any) -> None:
        """Keeps a part."""
        write_json(self._file(subject, part), value)

    def _file(self, subject: str, part: str) -> Path:
        return self._path / f"{subject} {part}.json".replace(", ", "-").replace(" ", ".")


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except ValueError as error:
        raise UserError(f"{file}: cannot be read ({error}); without the file that part is made again") from error


def audited(subjects: Sequence[Subject], effort: Effort, folder: AuditFolder, watcher: Watcher) -> list[Finding]:
    """Every subject's finding; what the folder has is not made again, what needs a package that is not there waits."""
    made = []
    for number, subject in enumerate(subjects):
        if not (_can_be_had(subject) or folder.has(subject.name)):
            watcher.waits(subject.name, subject.needs)
            continue
        watcher.subject(number + 1, len(subjects), subject.name)
        made.append(_finding(subject, effort, folder, watcher))
    return made


def subjects(
    case: Case, undefended: Callable[[], Trained], names: Sequence[str], effort: Effort, out: Path
) -> list[Subject]:
    """A case as it is, and with each of its strategy's defences that are wanted; `out`: the audit's folder."""
    strategy = case.strategy
    made = [Subject(strategy, UNDEFENDED, "no defence", undefended)]
    for name, defence in chosen(names, strategy).items():
        if defence.epsilon is None:
            make = functools.cache(functools.partial(_defended, undefended, defence, effort))
            made.append(Subject(strategy, name, defence.words, make))
        else:
            kept = out / PARTS / f"{name}.encoders.safetensors"
            make = functools.cache(functools.partial(_private_encoders, case, defence.epsilon, kept))
            prepare = functools.partial(keep_encoders, case, defence.epsilon, kept)
            made.append(Subject(strategy, name, defence.words, make, defence.epsilon, "opacus", kept, prepare))
    return made


def trained(case: Case, effort: Effort) -> Trained:
    """A case trained and recorded, and beside it what attackers do that take part."""
    training, recording = recorded(case, {**backdoor.variations(case), **completion.variations(case, effort)})
    return Trained(case, tuple(training.simulation.scores()[training.case].tolist()), recording, training)


def _can_be_had(subject: Subject) -> bool:
    there = not subject.needs or importlib.util.find_spec(subject.needs) is not None
    return there or (subject.kept is not None and subject.kept.is_file())


def _defended(undefended: Callable[[], Trained], defence: Defence, effort: Effort) -> Trained:
    plain = undefended()
    return trained(plain.case.changed(settings=defence.change(plain.case.settings, plain.recording)), effort)


def _private_encoders(case: Case, epsilon: float, kept: Path) -> Trained:
    found = dp_recorded(case, epsilon, kept)
    return Trained(case, found.scores, found.recording, None, found.backdoor)


def _finding(subject: Subject, effort: Effort, folder: AuditFolder, watcher: Watcher) -> Finding:
    known = folder.read(subject.name, _ABOUT)
    if known is None:
        begun = time.perf_counter()
        made = subject.make()
        known = {
            "accuracy": list(made.scores),
            "versions": versions(),
            "machine": {name: str(value) for name, value in machine(made.case.device.type).items()},
            "settings": made.case.settings.as_dict(),
            **_released(made.case.settings),
            "seconds": time.perf_counter() - begun,
        }
        folder.write(subject.name, _ABOUT, known)
    figures, seconds = [], known.pop("seconds")
    for attack in (*ATTACKS.working(), *_ACTIVE):
        part = folder.read(subject.name, attack)
        if part is None:
            watcher.attack(attack)
            begun = time.perf_counter()
            found = _attacked(subject, attack, effort)
            part = {"figures": [one.as_dict() for one in found], "seconds": time.perf_counter() - begun}
            folder.write(subject.name, attack, part)
        figures += [Measured.from_dict(one) for one in part["figures"]]
        seconds += part["seconds"]
    return Finding(
        subject.strategy,
        subject.defence,
        subject.words,
        tuple(known.pop("accuracy")),
        tuple(figures),
        round(seconds, 1),
        epsilon=subject.epsilon,
        **known,
    )


def _attacked(subject: Subject, attack: str, effort: Effort) -> list[Measured]:
    made = subject.make()
    with suited(made.case.device, 0):  # many small products: more threads of a CPU would wait for each other
        return _figures(made, attack, effort, controlled=subject.defence == UNDEFENDED)


def _figures(made: Trained, attack: str, effort: Effort, *, controlled: bool) -> list[Measured]:
    if attack == "backdoor":
        return list(made.backdoor) or backdoor.measure(made.case, effort, made.training)
    if attack == "completion, active":
        return completion.measure_active(made.case, effort, made.recording, made.training)
    known = ATTACKS[attack]
    figures = known.measure(made.recording, effort)
    every = made.recording.with_earlier()
    if every is not None and known.earlier is not None:
        figures += of_earlier_releases(known.earlier(every, effort), known.earlier_saw)
    if known.controlled and controlled:
        for name, instead in controls(made.case, made.recording).items():
            figures += [replace(one, control=name) for one in known.measure(instead, effort)]
    if STRATEGIES[made.case.strategy].sums:
        figures = [replace(one, saw=one.saw.replace("encodings of one guest", _SUMS)) for one in figures]
    return figures


_SUMS = "sums of all guests' encodings"


def _released(settings: AnySettings) -> dict[str, Any]:
    if not isinstance(settings, Settings):
        return {"noise": 0.0, "releases": 0}
    return {"noise": settings.noise, "releases": settings.releases}
