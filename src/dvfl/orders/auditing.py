"""An audit from its options to its pages: the run or party that is attacked, what stands beside it, and files."""

import functools
import gc
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from dvfl.audit.audit import AuditFolder, Subject, Trained, Watcher, audited, subjects, trained
from dvfl.audit.defences import ALL, chosen
from dvfl.audit.pages.audit_pages import Audit, markdown, page, plots
from dvfl.audit.readers.readers import SMALL, Effort
from dvfl.audit.recordings.cases import Case, check_known, rows_of
from dvfl.audit.recordings.record_files import check_recorded, load_recording
from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.files import write_json, write_text
from dvfl.orders.options import Plan, chosen_device, read_data
from dvfl.reproduce.pages.presentation import standing_alone
from dvfl.runs import run_folder
from dvfl.strategies import STRATEGIES
from dvfl.strategies.presets import preset

PARTY = "party.toml"  # in a party's folder
_NUMBERS = "Labels are numbers: what is told of a label is whether it is above the median"
JSON, MARKDOWN, PAGE = "audit.json", "audit.md", "audit.html"
_BESIDE = "splitnn-wait"  # what DVFL is set beside; all others are set beside dvfl


@dataclass(frozen=True)
class AuditOrder:
    """What `dvfl audit` was asked for."""

    run: Path
    out: Path
    defences: tuple[str, ...]
    known: tuple[int, ...]  # () for the usual ones
    alone: bool
    small: bool
    device: str
    data_dir: Path | None
    encoders: bool = False  # those that need opacus, and nothing else

    @property
    def effort(self) -> Effort:
        usual = SMALL if self.small else Effort()
        return replace(usual, known=tuple(sorted(self.known))) if self.known else usual

    @property
    def command(self) -> str:
        words = ["dvfl", "audit", "RUN", *(word for name in self.defences for word in ("--defence", name))]
        words += [word for count in self.known for word in ("--known", str(count))]
        words += [*(["--alone"] if self.alone else []), *(["--small"] if self.small else [])]
        return shlex.join([*words, "--out", "DIR"])


def carry_out(order: AuditOrder, quiet: bool) -> Path:
    """Runs what is not there yet and writes the pages; gives the one for people."""
    if (order.run / PARTY).is_file():
        from dvfl.orders.extras import needed

        _check_of_party(order)
        needed("federation", "nats", "cryptography")
        from dvfl.orders.party_auditing import audit_party

        return audit_party(order.run, order.out, order.effort, order.known)
    device = torch.device(chosen_device(order.device))
    folder = _finished_run(order.run)
    data = _data(folder, order)
    case = _case(folder.config, data, device)
    # Some strategies take less of data that some guests have not all of, and note what they took.
    folder.check_data(data if data.labelled is None else case.simulation().data)
    check_known(order.known, rows_of(data)[0])
    wanted = _subjects(order, folder, case)
    about = {"run": folder.config["data_sha256"], "settings": case.settings.as_dict(), "seeds": list(case.seeds)}
    about["effort"] = _plain(order.effort)
    if not (order.encoders or AuditFolder.begun(order.out)):  # what is finished needs no recording
        check_recorded(folder.path)
    parts = AuditFolder(order.out, about, type(case.settings)().as_dict())
    if order.encoders:
        return _encoders(wanted)
    lines = Lines(quiet)
    with _little_to_collect():
        findings = audited(wanted, order.effort, parts, lines)
    audit = Audit(
        subject=f"{data.name}, {case.strategy}, preset {folder.config['preset']}, {data.rows:,} training rows",
        dataset=data.name,
        command=order.command,
        seeds=case.seeds,
        note=". ".join(filter(None, [data.note, "" if data.classes is not None else _NUMBERS])),
        score="accuracy, %" if data.classes is not None else "R2",
        findings=findings,
        waiting=lines.waiting,
    )
    return write_audit(audit, order.out)


def _check_of_party(order: AuditOrder) -> None:
    given = {"--defence": order.defences != (ALL,), "--alone": order.alone, "--dp-encoders": order.encoders}
    option = next((name for name, there in given.items() if there), None)
    if option is not None:
        raise UserError(f"{option}: a party's folder is audited as it is, by itself; {option} is for runs")


@contextmanager
def _little_to_collect() -> Iterator[None]:
    """Keeps what was imported out of collections: on a GPU one precedes each of the hundreds of graphs of an audit."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _encoders(wanted: Sequence[Subject]) -> Path:
    """Trains what an audit on another machine can go on from; gives the file."""
    for one in wanted:
        if one.prepare is not None and one.kept is not None:
            one.prepare()
            return one.kept
    raise UserError("--dp-encoders: dp-sgd is not among the defences of this audit; --defence dp-sgd, or all, is right")


def write_audit(audit: Audit, out: Path) -> Path:
    """Figures, plots and pages; gives the page for people."""
    write_json(out / JSON, audit.as_dict())
    for name, svg in plots(audit).items():
        write_text(out / f"{name}.svg", standing_alone(svg))
    write_text(out / MARKDOWN, markdown(audit))
    write_text(out / PAGE, page(audit))
    return out / PAGE


class Lines(Watcher):
    """Progress on stderr."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._begun, self._where = quiet, time.monotonic(), ""
        self.waiting: list[str] = []

    def subject(self, number: int, count: int, name: str) -> None:
        self._where = f"{number} of {count}: {name}"

    def attack(self, name: str) -> None:
        self._print(f"{self._where}: {name.replace('_', ' ')}, {time.monotonic() - self._begun:.0f} s")

    def waits(self, name: str, package: str) -> None:
        self.waiting.append(f"{name}: needs {package} (pip install 'dvfl[privacy]'); the same command then adds it")
        self._print(self.waiting[-1])

    def _print(self, line: str) -> None:
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)


def _finished_run(path: Path) -> run_folder.RunFolder:
    if not (path / run_folder.CONFIG).is_file():
        raise UserError(f"{path}: neither a run folder (dvfl train --record) nor a party's; one of those is right")
    folder = run_folder.reopen(path)
    if not folder.finished:
        raise UserError(f"{path} is not trained to its end; dvfl train --resume --out {path} goes on with it")
    if folder.config["faults"]:
        raise UserError(f"{path} was trained with --faults; an audit needs a run without")
    return folder


def _data(folder: run_folder.RunFolder, order: AuditOrder) -> VerticalData:
    source = dict(folder.config["data"])
    if order.data_dir is not None:
        source["data_dir"] = str(order.data_dir.resolve())
    plan = Plan(source, "dvfl", "tuned", 1, [], "cpu", None, {})
    return read_data(plan)[0]


def _case(config: dict[str, Any], data: VerticalData, device: torch.device) -> Case:
    name = config["strategy"]
    settings = STRATEGIES.find(name).settings.from_dict(config["settings"])
    return Case(name, data, settings, tuple(config["seeds"]), device)


def _subjects(order: AuditOrder, folder: run_folder.RunFolder, case: Case) -> list[Subject]:
    beside = _BESIDE if STRATEGIES[case.strategy].sends == "encodings" else "dvfl"
    for name in (case.strategy, beside):
        chosen(order.defences, name)  # refuses a name that there is not, before anything is trained

    @functools.cache
    def this() -> Trained:
        result = folder.result()
        scores = tuple(result.get("r2", result["accuracy"]))
        return Trained(case, scores, load_recording(folder.path, case.device), None)

    wanted = subjects(case, this, order.defences, order.effort, order.out)
    if order.alone:
        return wanted
    settings = preset(folder.config["preset"], case.data, beside)
    other = replace(case, strategy=beside, settings=settings)
    make = functools.cache(functools.partial(trained, other, order.effort))
    return [*wanted, *subjects(other, make, order.defences, order.effort, order.out)]


def _plain(effort: Effort) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(effort).items()}
