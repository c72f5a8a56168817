"""Many trainings as few stacks: what can share a stack runs as one block, and every finished block is a file."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from dvfl.data.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.files import write_json
from dvfl.parties.faults import Faults
from dvfl.parties.sizes import sizes
from dvfl.strategies import strategy
from dvfl.strategies.fedvs import WIDTH as FEDVS_WIDTH
from dvfl.strategies.presets import preset
from dvfl.strategies.settings import AnySettings, FedVSSettings, Settings
from dvfl.strategies.simulation import Simulation

_FLOAT = 4  # bytes
_SHARE = {"cuda": 0.85, "cpu": 0.4}  # of the memory (on a GPU: of what is free) that a block may take


@dataclass(frozen=True)
class Training:
    """One training of an experiment: a strategy with the preset's settings and some changed, faults, a seed."""

    strategy: str
    faults: tuple[str, ...]  # as on a command line
    seed: int
    change: tuple[tuple[str, Any], ...] = ()  # fields of the strategy's settings


@dataclass(frozen=True)
class Outcome:
    """What came of a training."""

    accuracy: float | None  # percent; None where it stalled
    stalled: int | None  # the round
    repeated: int | None  # requests made again, where the strategy asks again


Watch = Callable[[Simulation], None]  # called after every epoch


def settings_of(training: Training, preset_name: str, data: VerticalData) -> AnySettings:
    """The preset's settings for the training's strategy, changed as it says."""
    return replace(preset(preset_name, data, training.strategy), **dict(training.change))


def blocks(
    trainings: Iterable[Training],
    preset_name: str,
    data: VerticalData,
    device: str,
    *,
    memory: float | None = None,
    least: int = 1,
) -> list[tuple[Training, ...]]:
    """Trainings grouped by what can share a stack, in pieces that fit into memory (bytes; None: what the device has).

    A group of so many trainings makes at least `least` of them.
    """
    groups: dict[tuple[object, ...], list[Training]] = {}
    for training in trainings:
        # What waits for lost messages stalls at once and would leave the rest of its stack to idle columns.
        alone = training.faults if training.strategy == "splitnn-wait" else ()
        groups.setdefault((training.strategy, training.change, alone), []).append(training)
    made = []
    for group in groups.values():
        each = replica_bytes(group[0].strategy, settings_of(group[0], preset_name, data), data)
        most = max(1, int((memory_of(device) if memory is None else memory) / each))
        pieces = max(-(-len(group) // most), min(least, len(group)))
        ends = [len(group) * number // pieces for number in range(pieces + 1)]
        made += [tuple(group[start:end]) for start, end in pairwise(ends)]
    return made


def run(
    block: Sequence[Training],
    preset_name: str,
    data: VerticalData,
    device: str,
    read: Callable[[str], Any],
    watch: Watch = lambda simulation: None,
) -> list[Outcome]:
    """Trains a block as one stack."""
    first = block[0]
    simulation = strategy(first.strategy)(
        data,
        settings_of(first, preset_name, data),
        [training.seed for training in block],
        faults=[Faults.parse(training.faults, read) for training in block],
        device=device,
    )
    while not simulation.finished:
        simulation.advance()
        watch(simulation)
    repeated = [None] * len(block) if simulation.repeated is None else simulation.repeated.tolist()
    scores = simulation.scores().tolist()
    return [
        Outcome(None if at is not None else round(score, 4), at, again)
        for score, at, again in zip(scores, simulation.stalled, repeated, strict=True)
    ]


class BlockFolder:
    """Finished blocks on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.outcomes: dict[Training, Outcome] = {}
        self.seconds = 0.0  # of all finished blocks
        for file in sorted(path.glob("*.json")):
            self._read(file)

    def write(self, block: Sequence[Training], outcomes: Sequence[Outcome], seconds: float) -> None:
        """Keeps a finished block."""
        pairs = [{"training": asdict(t), "outcome": asdict(o)} for t, o in zip(block, outcomes, strict=True)]
        digest = hashlib.sha256(repr(block).encode()).hexdigest()[:12]
        self._path.mkdir(parents=True, exist_ok=True)
        write_json(self._path / f"{block[0].strategy}-{digest}.json", {"seconds": seconds, "trainings": pairs})
        self.outcomes |= dict(zip(block, outcomes, strict=True))
        self.seconds += seconds

    def _read(self, file: Path) -> None:
        try:
            plain = json.loads(file.read_text())
            for pair in plain["trainings"]:
                given = pair["training"]
                change = tuple((name, value) for name, value in given["change"])
                training = Training(given["strategy"], tuple(given["faults"]), given["seed"], change)
                self.outcomes[training] = Outcome(**pair["outcome"])
            self.seconds += plain["seconds"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{file}: no finished block ({error}); delete it to have it made again") from error


def timed(work: Callable[[], list[Outcome]]) -> tuple[list[Outcome], float]:
    """What `work` gives, and the seconds it took."""
    start = time.perf_counter()
    outcomes = work()
    return outcomes, time.perf_counter() - start


def replica_bytes(name: str, settings: AnySettings, data: VerticalData) -> int:
    """About what one replica takes in memory at its peak."""
    widths = sizes(data.sizes, [guest.columns for guest in data.guests], settings.w_g, settings.w_h)
    joint, rows = sum(widths.guest_latent), data.rows
    batches = 24 << 20  # parameters, moments, gradients and a round's intermediate values
    if isinstance(
        settings, FedVSSettings
    ):  # shares of all columns and weights at all guests, and what they are cut into
        columns = 2 * sum(guest.columns for guest in data.guests)
        return batches + len(data.guests) * columns * (settings.batch + FEDVS_WIDTH) * 8 * 8
    if not isinstance(settings, Settings):
        return batches + (rows * joint * _FLOAT if name == "vafl" else 0)
    owner = rows * (settings.hosts * widths.host_latent or joint) * _FLOAT
    epochs = settings.communicated if settings.replayed else 1
    history = epochs * rows * joint * (2 if settings.history_dtype == "float16" else 4) if settings.hosts else 0
    return settings.hosts * batches + batches + max(history, owner)


def memory_of(device: str) -> float:
    """Bytes that a block may take here."""
    if device == "cuda":
        return float(torch.cuda.mem_get_info()[0]) * _SHARE["cuda"]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * _SHARE["cpu"]
