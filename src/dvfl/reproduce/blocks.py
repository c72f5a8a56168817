"""Many trainings as few stacks: what can share a stack runs as one block, and every finished block is a file."""

import gc
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.files import write_json
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.networks.sizes import sizes
from dvfl.parties.numerics.learner import Rule
from dvfl.parties.objectives.objective import ObjectiveName
from dvfl.reproduce.outcome.experiment import MNIST, Change, Source
from dvfl.reproduce.references import REFERENCES
from dvfl.reproduce.sources import Sources
from dvfl.settings.training import AnySettings, FedVSSettings, Settings
from dvfl.simulation.simulation import Simulation, megabytes_sent_per_guest
from dvfl.strategies import STRATEGIES
from dvfl.strategies.fedvs.fedvs import WIDTH as FEDVS_WIDTH
from dvfl.strategies.presets import preset

_FLOAT = 4  # bytes
_PARTY = 24 << 20  # bytes: parameters, moments, gradients and a round's intermediate values
_SHARE = {"cuda": 0.85, "cpu": 0.4}  # of the memory (on a GPU: of what is free) that a block may take


@dataclass(frozen=True)
class Training:
    """One training of an experiment: a strategy with the preset's settings and some changed, faults, data, a seed."""

    strategy: str  # or a reference
    faults: tuple[str, ...]  # as on a command line
    seed: int
    change: Change = ()
    source: Source = MNIST

    @property
    def key(self) -> str:
        """The same for trainings that are the same."""
        return json.dumps({**asdict(self), "change": _plain(dict(self.change))}, sort_keys=True)


@dataclass(frozen=True)
class Outcome:
    """What came of a training."""

    accuracy: float | None  # percent; None where it stalled
    stalled: int | None = None  # the round
    repeated: int | None = None  # requests made again, where the strategy asks again
    megabytes: float | None = None  # sent per guest, where there are guests


Watch = Callable[[Simulation], None]  # called after every epoch


def settings_of(training: Training, preset_name: str, data: VerticalData) -> AnySettings:
    """The preset's settings for the training's strategy, changed as it says."""
    change = dict(training.change)
    objective: ObjectiveName = change.get("guest_objective", "reconstruction")
    return replace(preset(preset_name, data, training.strategy, objective), **change)


def blocks(
    trainings: Iterable[Training],
    preset_name: str,
    sources: Sources,
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
        alone: object = training.faults if _waits(training.strategy) else ()
        if training.strategy in REFERENCES and training.source.varies:  # which gains nothing by a stack
            alone = training.seed
        groups.setdefault((training.strategy, training.change, training.source, alone), []).append(training)
    made = []
    for group in groups.values():
        most = _most_at_once(group[0], preset_name, sources, memory_of(device) if memory is None else memory)
        pieces = max(-(-len(group) // most), min(least, len(group)))
        ends = [len(group) * number // pieces for number in range(pieces + 1)]
        made += [tuple(group[start:end]) for start, end in pairwise(ends)]
    return made


def run(
    block: Sequence[Training],
    preset_name: str,
    sources: Sources,
    device: str,
    read: Callable[[str], Any],
    watch: Watch = lambda simulation: None,
) -> list[Outcome]:
    """Trains a block as one stack."""
    first = block[0]
    if first.strategy in REFERENCES:
        made = REFERENCES[first.strategy]
        return [Outcome(round(made(sources.data(one.source, one.seed), one.seed), 4)) for one in block]
    _release_memory(device)
    each = {training.seed: sources.data(training.source, training.seed) for training in block}
    simulation = STRATEGIES[first.strategy](
        [each[training.seed] for training in block],
        settings_of(first, preset_name, each[first.seed]),
        [training.seed for training in block],
        faults=[Faults.parse(training.faults, read) for training in block],
        device=device,
    )
    while not simulation.finished:
        simulation.advance()
        watch(simulation)
    repeated = [None] * len(block) if simulation.repeated is None else simulation.repeated.tolist()
    scores, sent = simulation.scores().tolist(), round(megabytes_sent_per_guest(simulation.flows()), 3)
    return [
        Outcome(None if at is not None else round(score, 4), at, again, sent)
        for score, at, again in zip(scores, simulation.stalled, repeated, strict=True)
    ]


class BlockFolder:
    """Finished blocks on disk, whichever experiment they were made for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.outcomes: dict[str, Outcome] = {}  # by the training's key
        self.seconds: dict[str, float] = {}  # of a training: its part of its block's
        self._settings: dict[str, Mapping[str, Any]] = {}
        for file in sorted(path.glob("*.json")):
            self._read(file)

    def write(
        self, block: Sequence[Training], settings: Mapping[str, Any], outcomes: Sequence[Outcome], seconds: float
    ) -> None:
        """Keeps a finished block, with the settings that its trainings had."""
        pairs = [{"training": json.loads(t.key), "outcome": asdict(o)} for t, o in zip(block, outcomes, strict=True)]
        digest = hashlib.sha256("".join(training.key for training in block).encode()).hexdigest()[:12]
        self._path.mkdir(parents=True, exist_ok=True)
        file = self._path / f"{block[0].strategy}-{digest}.json"
        write_json(file, {"seconds": seconds, "settings": settings, "trainings": pairs})
        self._read(file)

    def check(self, block: Sequence[Training], settings: Mapping[str, Any]) -> None:
        """Refuses finished trainings that were made with other settings than they would have now."""
        for training in block:
            before = self._settings.get(training.key, settings)
            for name in sorted({*before, *settings}):
                if before.get(name) != settings.get(name):
                    raise UserError(
                        f"{self._path}: {training.strategy} was trained with {name} {before.get(name)}, and this"
                        f" version says {settings.get(name)}; another --out keeps both"
                    )

    def _read(self, file: Path) -> None:
        try:
            plain = json.loads(file.read_text())
            for pair in plain["trainings"]:
                key = json.dumps(pair["training"], sort_keys=True)
                self.outcomes[key] = Outcome(**pair["outcome"])
                self.seconds[key] = plain["seconds"] / len(plain["trainings"])
                self._settings[key] = plain["settings"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{file}: no finished block ({error}); delete it to have it made again") from error


def plain_settings(training: Training, preset_name: str, data: VerticalData) -> dict[str, Any]:
    """A training's settings as they are in a file; a reference has none."""
    if training.strategy in REFERENCES:
        return {}
    plain: dict[str, Any] = json.loads(json.dumps(settings_of(training, preset_name, data).as_dict()))
    return plain


def timed(work: Callable[[], list[Outcome]]) -> tuple[list[Outcome], float]:
    """What `work` gives, and the seconds it took."""
    start = time.perf_counter()
    outcomes = work()
    return outcomes, time.perf_counter() - start


def replica_bytes(name: str, settings: AnySettings, data: VerticalData, own_data: bool = False) -> int:
    """About what one replica takes in memory at its peak; `own_data`: its tables are its own."""
    widths = sizes(data.sizes, [guest.columns for guest in data.guests], settings.w_g, settings.w_h)
    joint, rows = sum(widths.guest_latent), data.rows
    batches = _PARTY
    if own_data:
        batches += 3 * sum(guest.columns for guest in data.guests) * rows * _FLOAT  # training, labelled and test rows
    if isinstance(settings, FedVSSettings):  # shares of all columns and weights at all guests, cut into limbs
        columns = 2 * sum(guest.columns for guest in data.guests)
        batches += len(data.guests) * columns * rows * 8 if own_data else 0
        return batches + len(data.guests) * columns * (settings.batch + FEDVS_WIDTH) * 8 * 8
    collected = len(data.y_train) * (1 + settings.copies)
    if not isinstance(settings, Settings):
        batches += collected * sum(guest.columns for guest in data.guests) * _FLOAT if settings.copies else 0
        return batches + (collected * joint * _FLOAT if name == "vafl" else 0)
    sent = joint if settings.host_model == "concatenate" else widths.host_latent
    collected += len(data.y_train) * settings.partial
    owner = collected * (settings.hosts * sent or joint) * _FLOAT
    epochs = settings.communicated if settings.replayed else 1
    learning = settings.hosts and settings.host_model == "autoencoder"
    history = epochs * rows * joint * (2 if settings.history_dtype == "float16" else 4) if learning else 0
    copies = 2 * settings.batch  # SimCLR compares each with each, and gathers them by column
    columns = sum(guest.columns for guest in data.guests)
    compared = len(data.guests) * copies + 8 * columns if settings.guest_objective == "simclr" else 0
    compared += settings.hosts * (copies + 8 * joint) if settings.host_objective == "simclr" else 0
    return settings.hosts * _PARTY + batches + max(history, owner) + copies * compared * _FLOAT


def _most_at_once(training: Training, preset_name: str, sources: Sources, memory: float) -> int:
    if training.strategy in REFERENCES:
        return 1
    data = sources.example(training.source)
    settings = settings_of(training, preset_name, data)
    each = replica_bytes(training.strategy, settings, data, training.source.varies)
    return max(1, int(memory / each))


def _plain(value: Any) -> Any:
    """Plain data; rules as the settings write them."""
    if isinstance(value, Rule):
        return {"name": type(value).__name__.lower(), **asdict(value)}
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _waits(name: str) -> bool:
    return name not in REFERENCES and STRATEGIES[name].waits


def _release_memory(device: str) -> None:
    """Gives back what the block before held: in pieces of other sizes it would not serve the next."""
    if device == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def memory_of(device: str) -> float:
    """Bytes that a block may take here."""
    if device == "cuda":
        return float(torch.cuda.mem_get_info()[0]) * _SHARE["cuda"]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * _SHARE["cpu"]
