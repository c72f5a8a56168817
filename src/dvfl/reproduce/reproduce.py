"""`dvfl reproduce`: experiments' trainings in blocks, their results beside the paper's, and pages to read them."""

import json
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.files import write_json, write_text
from dvfl.reproduce.blocks import BlockFolder, Training
from dvfl.reproduce.outcome.experiment import MNIST, Experiment, Planned
from dvfl.reproduce.outcome.results import Cell, Results
from dvfl.reproduce.pages.pages import markdown, page
from dvfl.reproduce.pages.presentation import presentation, standing_alone
from dvfl.reproduce.paper import EXPERIMENTS, chosen
from dvfl.reproduce.sources import Sources
from dvfl.reproduce.timing import times
from dvfl.reproduce.workers import ThisProcess, Watcher, Workers, complete, machine
from dvfl.runs.run_folder import status, versions

REPORT = "report.html"
_FORMAT = 2  # of the folder with finished blocks
_OPTIONS = ("hosts", "period", "owner_epochs", "epochs")  # changes that `dvfl train` has an option for


@dataclass(frozen=True)
class Order:
    """What `dvfl reproduce` was asked for."""

    experiment: str  # or all
    preset: str
    seeds: int | None  # None: as many as each experiment says
    rows: int | None  # training rows, drawn once for all; None: all
    device: str
    data_dir: Path | None = None

    def command(self, experiment: str, seeds: int, out: str = "DIR") -> str:
        """The command that makes one experiment again."""
        words = ["dvfl", "reproduce", experiment, "--preset", self.preset, "--seeds", str(seeds)]
        words += [] if self.rows is None else ["--rows", str(self.rows)]
        return shlex.join([*words, "--device", self.device, "--out", out])


def reproduce(order: Order, out: Path, watcher: Watcher, workers: Workers | None = None) -> list[Results]:
    """Runs what is not there yet, and writes NAME.json, NAME.md and NAME.svg of each experiment, and report.html.

    Blocks are run by `workers`, where some are given, and otherwise in this process.
    """
    workers = workers or ThisProcess(order.device)
    experiments = chosen(order.experiment)
    sources = Sources(order.data_dir, order.rows)
    folder = _opened(order, out, experiments, sources)
    made = []
    for experiment in experiments:
        if experiment.measured:
            results = _measured(experiment, order, out, sources)
        else:
            cells, seeds = experiment.cells(order.preset), order.seeds or experiment.seeds
            wanted = [training for cell in cells for training in trainings(cell, seeds)]
            complete(list(dict.fromkeys(wanted)), order.preset, sources, folder, workers, watcher)
            results = _results(experiment, order, folder, sources, workers)
        publish(results, out)
        made.append(results)
    return made


def publish(results: Results, out: Path) -> None:
    """Writes one experiment's files, and the report of all that the folder has."""
    shown = presentation(results)
    write_json(out / f"{results.experiment}.json", {**results.to_dict(), "comparisons": shown.comparisons})
    write_text(out / f"{results.experiment}.md", markdown(results))
    write_text(out / f"{results.experiment}.svg", standing_alone(shown.figure))
    write_text(out / REPORT, page(_all_results(out)))


def trainings(cell: Planned, seeds: int) -> list[Training]:
    """Of a cell, a seed each."""
    return [Training(cell.strategy, cell.faults, seed, cell.change, cell.source) for seed in range(seeds)]


def data_note(tables: list[VerticalData]) -> str:
    """What is to be known of the data, each with its name where there are several."""
    notes = dict.fromkeys((data.name, data.note) for data in tables)
    told = [note if len(notes) == 1 else f"{name}: {note}" for name, note in notes if note]
    return ". ".join(told)


def _opened(order: Order, out: Path, experiments: list[Experiment], sources: Sources) -> BlockFolder:
    """The folder with what was finished before, for the same order on the same data."""
    path = out / "blocks"
    note = path / "order.note"
    try:
        if path.is_dir() and not note.exists() and any(path.iterdir()):
            raise UserError(f"{path}: blocks of another version of dvfl; another --out keeps both")
    except OSError as error:
        raise UserError(f"--out {out} cannot be read ({error.strerror}); another place is right") from error
    names = sorted({cell.source.dataset for one in experiments for cell in one.cells(order.preset)})
    data = {f"data of {name}": sources.fingerprint(name) for name in names}
    begun = {"format": _FORMAT, "preset": order.preset, "rows": order.rows, "device": order.device, **data}
    try:
        path.mkdir(parents=True, exist_ok=True)
        before = json.loads(note.read_text()) if note.exists() else {}
        for name, value in begun.items():
            if before.get(name, value) != value:
                what = "are others" if name.startswith("data of ") else f"is {value} here and {before[name]} there"
                raise UserError(f"--out {out} was begun otherwise: {name} {what}; another --out keeps both")
        write_json(note, {**before, **begun})
    except OSError as error:
        raise UserError(f"--out {out} cannot be written ({error.strerror}); another place is right") from error
    return BlockFolder(path)


def _measured(experiment: Experiment, order: Order, out: Path, sources: Sources) -> Results:
    """Times, measured here and now on a CPU, as in the paper, unless they are there already."""
    file = out / f"{experiment.name}.json"
    if file.is_file():
        return Results.from_dict(json.loads(file.read_text()))
    start = time.perf_counter()
    data = sources.example(MNIST)
    device = "cpu"
    seconds = times(data, order.preset, device)
    command = replace(order, device=device).command(experiment.name, experiment.seeds)
    cells = [
        Cell(
            cell.strategy,
            data.name,
            cell.condition,
            *([], [], "ok", None, None, command),
            fields={"seconds": seconds[cell.strategy][cell.condition["quantity"]], **cell.fields},
        )
        for cell in experiment.cells(order.preset)
    ]
    spent = round(time.perf_counter() - start, 1)
    return Results(experiment.name, order.preset, machine(device), versions(), command, spent, cells, order.rows)


def _results(experiment: Experiment, order: Order, folder: BlockFolder, sources: Sources, workers: Workers) -> Results:
    cells, seeds = experiment.cells(order.preset), order.seeds or experiment.seeds
    keys = {training.key for cell in cells for training in trainings(cell, seeds)}
    return Results(
        experiment=experiment.name,
        preset=order.preset,
        machine=workers.machine,
        versions=versions(),
        command=order.command(experiment.name, seeds),
        seconds=round(sum(folder.seconds[key] for key in keys), 1),
        cells=[_cell(cell, experiment, order, folder) for cell in cells],
        rows=order.rows,
        note=data_note([sources.example(cell.source) for cell in cells]),
    )


def _cell(cell: Planned, experiment: Experiment, order: Order, folder: BlockFolder) -> Cell:
    seeds = order.seeds or experiment.seeds
    outcomes = [folder.outcomes[training.key] for training in trainings(cell, seeds)]
    repeated = [outcome.repeated for outcome in outcomes if outcome.repeated is not None]
    sent = outcomes[0].megabytes
    return Cell(
        strategy=cell.strategy,
        dataset=cell.source.dataset,
        condition=cell.condition,
        seeds=list(range(seeds)),
        accuracy=[outcome.accuracy for outcome in outcomes],
        status=status([outcome.stalled for outcome in outcomes]),
        paper_mean=cell.paper_mean,
        paper_two_sigma=cell.paper_two_sigma,
        command=_cell_command(cell, experiment, order, seeds),
        requests_repeated=sum(repeated) if repeated else None,
        untouched=cell.untouched,
        fields={**({} if sent is None else {"bytes_sent_per_guest": round(sent * 1e6)}), **cell.fields},
    )


def _cell_command(cell: Planned, experiment: Experiment, order: Order, seeds: int) -> str:
    """One training command where there is one; else the experiment's."""
    if order.rows is not None or cell.source.varies or any(name not in _OPTIONS for name, _ in cell.change):
        return order.command(experiment.name, seeds)
    words = ["dvfl", "train", "--dataset", cell.source.dataset, "--strategy", cell.strategy, "--preset", order.preset]
    words += [word for name, value in cell.change for word in (f"--{name.replace('_', '-')}", str(value))]
    return shlex.join([*words, "--seeds", str(seeds), *(word for fault in cell.faults for word in ("--faults", fault))])


def _all_results(out: Path) -> list[Results]:
    """Of all experiments in the folder, in the usual order."""
    files = [out / f"{name}.json" for name in EXPERIMENTS]
    return [Results.from_dict(json.loads(file.read_text())) for file in files if file.is_file()]
