"""A run from its options to its result: folder, data, epochs with checkpoints, and what is printed at the end."""

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from dvfl.audit.recordings.cases import check_recordable
from dvfl.audit.recordings.record_files import save_recording
from dvfl.audit.recordings.recorder import Recorder
from dvfl.callbacks import Callback, TensorBoard, advance, followed
from dvfl.data.split.vertical import Split
from dvfl.errors import UserError
from dvfl.orders.options import Given, fresh, parse_faults, read_data, resumed, settle
from dvfl.release.accounting import promise
from dvfl.runs import run_folder
from dvfl.runs.interrupts import Interrupted, Interrupts
from dvfl.runs.report import size
from dvfl.runs.run_folder import RunFolder
from dvfl.settings.training import Settings
from dvfl.show.progress import display
from dvfl.simulation.checkpoint import restore, save
from dvfl.simulation.simulation import Simulation
from dvfl.strategies import STRATEGIES


def run(
    given: Given,
    out: Path | None,
    *,
    resume: bool,
    quiet: bool,
    tensorboard: Path | None = None,
    record: bool = False,
) -> None:
    """Trains, or goes on training, and prints the result; `tensorboard`: a folder for its curves.

    `record`: what parties saw of each other is kept for an audit. A run that was begun with it goes on with it.
    """
    followers = [] if tensorboard is None else [_tensorboard(tensorboard)]
    with Interrupts() as interrupts:
        if resume:
            folder = run_folder.reopen(out)
            plan = resumed(given, folder.config, folder.path / run_folder.CONFIG)
            if folder.finished:
                _tell(f"{folder.path}: this run was finished before; its result:", quiet)
                _print_result(folder)
                return
            record = record or folder.config.get("record", False)
            torch.set_num_threads(folder.config["threads"])  # or the result would not be the same to the last digit
        else:
            plan = fresh(given)
            path = run_folder.unused(out, f"{plan.name}-{plan.strategy}")
        data, encoders = read_data(plan)
        settings = settle(plan, data)
        faults = parse_faults(plan.faults)
        if STRATEGIES[plan.strategy].sends != "encodings" and plan.overrides.get("hosts", 1) != 1:
            _tell(f"{plan.strategy} has one host; --hosts {plan.overrides['hosts']} has no effect", quiet)
        simulation = STRATEGIES[plan.strategy](data, settings, range(plan.seeds), faults=faults, device=plan.device)
        if "tables" in plan.data and (data.labelled is not None or data.gaps):
            _tell(simulation.data.note, quiet)
        if record:
            check_recordable(simulation)
        known = simulation.settings
        if isinstance(known, Settings) and known.noise and not quiet:
            _tell(f"noise: {promise(known.noise, known.releases)}", quiet)
        if resume:
            folder.check_data(simulation.data)  # what is left of the data where a strategy takes less
            _restore(simulation, folder)
        interrupts.patient = True  # before there is a folder: from then on a first signal ends in a checkpoint
        if not resume:
            config = run_folder.config(simulation, plan.strategy, plan.preset, plan.data)
            folder = run_folder.create(path, {**config, "record": record})
        callbacks = [display(simulation, quiet), *followers]
        recorder = Recorder() if record else None
        with followed(simulation, callbacks):
            _train(simulation, folder, callbacks, interrupts, recorder)
        if recorder is not None:
            save_recording(recorder.recording(simulation, plan.strategy), folder.path)
        folder.finish(simulation, encoders)
        _print_result(folder)


def _tensorboard(folder: Path) -> TensorBoard:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--tensorboard {folder} cannot be made ({error.strerror}); another folder is right") from error
    return TensorBoard(folder)


def _train(
    simulation: Simulation,
    folder: RunFolder,
    callbacks: Sequence[Callback],
    interrupts: Interrupts,
    recorder: Recorder | None,
) -> None:
    seconds = simulation.watch.seconds
    start = time.perf_counter() - seconds.get("total", 0.0)
    while not simulation.finished:
        prepared = simulation.prepare()
        if not prepared:
            advance(simulation, callbacks)
            if recorder is not None:
                recorder.look(simulation)
        stopped = interrupts.noted is not None and not simulation.finished
        if prepared or stopped:
            seconds["total"] = time.perf_counter() - start
            save(simulation, folder.checkpoint)
        if stopped:
            _stop(simulation, folder, interrupts)
    simulation.watch.totals()  # waits for the GPU
    seconds["total"] = time.perf_counter() - start


def _stop(simulation: Simulation, folder: RunFolder, interrupts: Interrupts) -> None:
    assert interrupts.noted is not None
    command = shlex.join(["dvfl", "train", "--resume", "--out", str(folder.path)])
    done = f"interrupted after {simulation.done} of {simulation.epochs} epochs"
    raise Interrupted(f"{done}; to continue: {command}", interrupts.noted)


def _restore(simulation: Simulation, folder: RunFolder) -> None:
    if not folder.checkpoint.is_file():
        return  # ended before there was anything to keep: it begins again
    try:
        restore(simulation, folder.checkpoint)
    except (SafetensorError, KeyError, RuntimeError, ValueError) as error:
        raise UserError(
            f"{folder.checkpoint}: cannot be read ({error}); delete it to begin that run again with --resume"
        ) from error


def _print_result(folder: RunFolder) -> None:
    lines = _lines(folder.result(), folder)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:<{width}}  {value}")
    sys.stdout.flush()


def _lines(result: dict[str, Any], folder: RunFolder) -> list[tuple[str, str]]:
    seeds, seconds = len(result["seeds"]), result["seconds"]
    spread = f" over {seeds} seeds" if seeds > 1 else ""
    if "r2" in result:
        score = ("R2", f"{_number(result['r2_mean'], 4)} ± {_number(result['r2_2sigma'], 4)} (2 sigma{spread})")
    else:
        score = (
            "accuracy",
            f"{_number(result['accuracy_mean'], 2)} % ± {_number(result['accuracy_2sigma'], 2)} (2 sigma{spread})",
        )
    stalled = [("status", result["status"])] if result["status"] != "ok" else []
    repeated = [("asked again", f"{result['requests_repeated']:,}")] if "requests_repeated" in result else []
    data = folder.config["data"]
    split = [("split", str(Split(data["split"], data["split_seed"])))] if "split" in data else []
    return [
        ("dataset", result["dataset"]),
        *split,
        ("strategy", result["strategy"]),
        ("preset", result["preset"]),
        ("hosts", str(result["hosts"])),
        ("faults", ", ".join(result["faults"]) or "none"),
        ("seeds", str(seeds)),
        *stalled,
        score if seeds > 1 else (score[0], score[1].split(" ±")[0]),
        *repeated,
        ("seconds", ", ".join(f"{name} {seconds[name]:.1f}" for name in ("guests", "hosts", "owner", "total"))),
        ("sent per guest", f"{size(result['megabytes_sent_per_guest'])} MB"),
        ("report", str(folder.path / run_folder.REPORT)),
    ]


def _number(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _tell(line: str, quiet: bool) -> None:
    if not quiet:
        print(line, file=sys.stderr)
