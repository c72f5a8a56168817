"""A run on disk: config.json first, result.json last, so a folder tells by itself how far it came."""

import dataclasses
import datetime
import hashlib
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data import ColumnEncoder, VerticalData
from dvfl.errors import UserError
from dvfl.files import write_json, write_text
from dvfl.runs.report import report
from dvfl.simulation.simulation import Simulation, megabytes_sent_per_guest
from dvfl.version import __version__

CONFIG, RESULT, HISTORY, REPORT = "config.json", "result.json", "history.json", "report.html"
MODELS, CHECKPOINT = "models", "checkpoint.safetensors"
FORMAT = 1


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """One run's folder and what it was begun with."""

    path: Path
    config: dict[str, Any]

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    @property
    def finished(self) -> bool:
        return (self.path / RESULT).is_file()

    def result(self) -> dict[str, Any]:
        """What result.json holds."""
        return _read(self.path / RESULT)

    def check_data(self, data: VerticalData) -> None:
        """Refuses to go on with other data than the run was begun with."""
        if fingerprint(data) != self.config["data_sha256"]:
            raise UserError(
                f"data: {data.name} is not what it was when {self.path / CONFIG} was written;"
                " bring the same data back, or start anew with another --out"
            )

    def finish(self, simulation: Simulation, encoders: Sequence[ColumnEncoder] = ()) -> None:
        """Writes history, models and report, the result after them, and drops the checkpoint."""
        data = simulation.data
        result, past = measure(simulation, self.config), history(simulation)
        extra = {
            "dataset": data.name,
            "classes": None if data.classes is None else list(data.classes),
            "guests": [guest.name for guest in data.guests],
            "encoders": [encoder.to_dict() for encoder in encoders],
        }
        write_json(self.path / HISTORY, past)
        simulation.save(self.path / MODELS, extra)
        write_text(self.path / REPORT, report(simulation, self.config, result, past))
        write_json(self.path / RESULT, result)
        self.checkpoint.unlink(missing_ok=True)


def unused(out: Path | None, name: str) -> Path:
    """The folder for a new run, checked and not yet made; a fresh one under runs/ where none is given."""
    if out is None:
        base = Path("runs") / f"{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
        tries = (base.with_name(f"{base.name}-{number}") for number in range(2, 1000))
        out = base if not base.exists() else next(path for path in tries if not path.exists())
    if out.is_dir() and any(out.iterdir()):
        raise UserError(f"{out} is already used; --resume continues it, another --out starts anew")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; a folder that does not exist yet is right")
    ancestor = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not ancestor.is_dir():
        raise UserError(f"--out {out}: {ancestor} is a file, so no folder can be made in it")
    if not os.access(ancestor, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: {ancestor} is not writable; a place that you may write to is right")
    return out


def create(path: Path, config: dict[str, Any]) -> RunFolder:
    """Makes the folder with its config.json."""
    made = [folder for folder in (path.absolute(), *path.absolute().parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / CONFIG, config)
    except OSError as error:
        for folder in made:
            if folder.is_dir():
                folder.rmdir()
        raise UserError(f"--out {path} cannot be written ({error.strerror}); another place is right") from error
    return RunFolder(path, config)


def reopen(out: Path | None) -> RunFolder:
    """The folder of a run that was begun before."""
    if out is None:
        raise UserError("--resume needs --out DIR: the run folder to continue")
    if not (out / CONFIG).is_file():
        raise UserError(f"{out} has no {CONFIG}, so there is no run to resume; without --resume a new one starts there")
    config = _read(out / CONFIG)
    if config.get("format") != FORMAT:
        raise UserError(f"{out / CONFIG}: format {config.get('format')}; this version of dvfl continues {FORMAT}")
    return RunFolder(out, config)


def config(simulation: Simulation, strategy: str, preset: str, source: dict[str, Any]) -> dict[str, Any]:
    """What config.json holds: everything that is needed to continue, and where the run was made."""
    return {
        "format": FORMAT,
        "strategy": strategy,
        "preset": preset,
        "data": source,
        "data_sha256": fingerprint(simulation.data),
        "settings": simulation.settings.as_dict(),
        "seeds": list(simulation.seeds),
        "faults": simulation.faults[0].texts,
        "device": simulation.device.type,
        "threads": torch.get_num_threads(),  # sums are added up in another order by another number of them
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of what figures depend on."""
    return {
        "dvfl": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def measure(simulation: Simulation, config: dict[str, Any]) -> dict[str, Any]:
    """What result.json holds."""
    scores = [_finite(round(score, 6)) for score in simulation.scores().tolist()]
    mean, two_sigma = _statistics(scores)
    classifies = simulation.data.classes is not None
    seconds = simulation.watch.totals()
    result = {
        "strategy": config["strategy"],
        "dataset": simulation.data.name,
        "preset": config["preset"],
        "hosts": simulation.host_count,
        "faults": config["faults"],
        "device": config["device"],
        "seeds": config["seeds"],
        "accuracy": scores if classifies else None,
        "accuracy_mean": mean if classifies else None,
        "accuracy_2sigma": two_sigma if classifies else None,
        "status": status(simulation.stalled),
        "seconds": {name: seconds.get(name, 0.0) for name in ("guests", "hosts", "owner", "total")},
        "megabytes_sent_per_guest": megabytes_sent_per_guest(simulation.flows()),
    }
    if simulation.repeated is not None:
        result["requests_repeated"] = int(simulation.repeated.sum())
    return result if classifies else {**result, "r2": scores, "r2_mean": mean, "r2_2sigma": two_sigma}


def history(simulation: Simulation) -> dict[str, Any]:
    """What history.json holds: the mean loss of every epoch, by party and seed; null where it was not finite.

    Held-out rows have a score, the higher the better: the share that is right, or minus the mean squared error of
    standardised targets.
    """
    names = [guest.name for guest in simulation.data.guests]
    hosts = [f"host-{number + 1}" for number in range(simulation.host_count)]
    past = simulation.history()
    return {
        "seeds": list(simulation.seeds),
        "guests": _by_party(names, past.guests),
        "hosts": _by_party(hosts, past.hosts),
        "owner": _by_seed(past.labels),
        "held_out_score": _by_seed(past.held_out),
    }


def status(stalled: Sequence[int | None]) -> str:
    """`ok`, or the round at which the first replica stalled."""
    rounds = [at for at in stalled if at is not None]
    return f"stalled at round {min(rounds)}" if rounds else "ok"


def fingerprint(data: VerticalData) -> str:
    """SHA-256 of everything in the data that a training can see."""
    digest = hashlib.sha256(repr((data.name, data.classes, data.sizes)).encode())
    arrays: list[NDArray[Any]] = [data.y_train, data.y_test, *([] if data.labelled is None else [data.labelled])]
    arrays += [] if data.tested is None else [data.tested]
    for guest in data.guests:
        digest.update(repr((guest.name, guest.unit, guest.train.shape, guest.test.shape)).encode())
        arrays += [guest.train, guest.test]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _by_party(names: Sequence[str], losses: Sequence[Tensor]) -> dict[str, list[list[float | None]]]:
    """Losses (replicas, parties) an epoch, as one curve a seed for every party."""
    if not losses:
        return {}
    return {name: _by_seed([epoch[:, number] for epoch in losses]) for number, name in enumerate(names)}


def _by_seed(losses: Sequence[Tensor]) -> list[list[float | None]]:
    if not losses:
        return []
    return [[_finite(loss) for loss in seed] for seed in torch.stack(list(losses), 1).tolist()]


def _statistics(scores: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and twice the sample standard deviation; the latter 0 for one seed."""
    known = [score for score in scores if score is not None]
    if not known:
        return None, None
    return float(np.mean(known)), 2 * float(np.std(known, ddof=1)) if len(known) > 1 else 0.0


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: a JSON object is right")
    return value
