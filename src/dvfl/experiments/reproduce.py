"""`dvfl reproduce`: an experiment's trainings in blocks, its results beside the paper's, and pages to read them."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from dvfl.data import VerticalData, load
from dvfl.data.vertical import fewer_rows
from dvfl.errors import UserError, nearest
from dvfl.experiments import table1
from dvfl.experiments.blocks import BlockFolder, Training
from dvfl.experiments.comparison_page import markdown, page
from dvfl.experiments.published import TABLE1
from dvfl.experiments.results import Cell, Results
from dvfl.experiments.run_folder import fingerprint, status, versions
from dvfl.experiments.table1_figure import table1_svg
from dvfl.experiments.workers import ThisProcess, Watcher, Workers, complete
from dvfl.files import write_json, write_text

EXPERIMENTS = ("table1",)
REPORT = "report.html"


@dataclass(frozen=True)
class Order:
    """What `dvfl reproduce` was asked for."""

    experiment: str
    preset: str
    seeds: int
    rows: int | None  # training rows, drawn once for all; None: all
    device: str
    data_dir: Path | None = None

    def command(self, out: str = "DIR") -> str:
        """The command that makes it again."""
        words = ["dvfl", "reproduce", self.experiment, "--preset", self.preset, "--seeds", str(self.seeds)]
        words += [] if self.rows is None else ["--rows", str(self.rows)]
        return shlex.join([*words, "--device", self.device, "--out", out])


def check_experiment(name: str) -> None:
    """Refuses a name that no experiment has."""
    if name not in EXPERIMENTS:
        raise UserError(f"no experiment is called '{name}'{nearest(name, EXPERIMENTS)}")


def reproduce(order: Order, out: Path, watcher: Watcher, workers: Workers | None = None) -> Results:
    """Runs what is not there yet, and writes NAME.json, NAME.md, NAME.svg and report.html.

    Blocks are run by `workers`, where some are given, and otherwise in this process.
    """
    check_experiment(order.experiment)
    data = fewer_rows(load(table1.DATASET, data_dir=order.data_dir), order.rows)
    folder = _opened(order, out, data)
    workers = workers or ThisProcess(order.device)
    complete(table1.trainings(order.seeds), order.preset, data, folder, workers, watcher)
    results = _results(order, folder, workers)
    write_json(out / f"{order.experiment}.json", results.to_dict())
    write_text(out / f"{order.experiment}.md", markdown(results))
    write_text(out / f"{order.experiment}.svg", table1_svg(results))
    write_text(out / REPORT, page(_all_results(out)))
    return results


def _opened(order: Order, out: Path, data: VerticalData) -> BlockFolder:
    """The folder with what was finished before, for the same order on the same data."""
    begun = {"preset": order.preset, "rows": order.rows, "device": order.device, "data_sha256": fingerprint(data)}
    path = out / "blocks" / order.experiment
    note = path.with_suffix(".order")
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not note.exists():
            if any(path.iterdir()):
                raise UserError(f"{path}: blocks without {note.name}; another --out is right")
            write_json(note, begun)
    except OSError as error:
        raise UserError(f"--out {out} cannot be written ({error.strerror}); another place is right") from error
    before = json.loads(note.read_text())
    for name, value in begun.items():
        if before.get(name) != value:
            what = "the data are not those" if name == "data_sha256" else f"{name} is {value} here and {before[name]}"
            raise UserError(f"--out {out}: {what} of {note}; the same order continues it, another --out starts anew")
    return BlockFolder(path)


def _results(order: Order, folder: BlockFolder, workers: Workers) -> Results:
    cells = [_cell(order, folder, name, condition) for name in TABLE1 for condition in table1.conditions()]
    return Results(
        experiment=order.experiment,
        preset=order.preset,
        machine=workers.machine,
        versions=versions(),
        command=order.command(),
        seconds=round(folder.seconds, 1),
        cells=cells,
        rows=order.rows,
    )


def _cell(order: Order, folder: BlockFolder, name: str, condition: table1.Condition) -> Cell:
    faults, seeds = table1.faults(condition), list(range(order.seeds))
    outcomes = [folder.outcomes[Training(name, faults, seed)] for seed in seeds]
    mean, two_sigma = table1.published(name, condition)
    repeated = [outcome.repeated for outcome in outcomes if outcome.repeated is not None]
    return Cell(
        strategy=name,
        dataset=table1.DATASET,
        condition=condition,
        seeds=seeds,
        accuracy=[outcome.accuracy for outcome in outcomes],
        status=status([outcome.stalled for outcome in outcomes]),
        paper_mean=mean,
        paper_two_sigma=two_sigma,
        command=_cell_command(order, name, faults),
        requests_repeated=sum(repeated) if repeated else None,
    )


def _cell_command(order: Order, name: str, faults: tuple[str, ...]) -> str:
    if order.rows is not None:
        return order.command()
    words = ["dvfl", "train", "--dataset", table1.DATASET, "--strategy", name, "--preset", order.preset]
    words += ["--seeds", str(order.seeds), *(word for fault in faults for word in ("--faults", fault))]
    return shlex.join(words)


def _all_results(out: Path) -> list[Results]:
    """Of all experiments in the folder, in the usual order."""
    files = [out / f"{name}.json" for name in EXPERIMENTS]
    return [Results.from_dict(json.loads(file.read_text())) for file in files if file.is_file()]
