"""Tries settings on held-out training rows and writes every trial down. Test rows are never loaded.

    python benchmarks/tune.py TRIALS.json --out TRIALS.jsonl --data-dir DIR --device cuda

TRIALS.json is a list of {"dataset", "split", "split_seeds", "labelled", "strategy", "preset", "seeds", "faults",
"change"}: `faults` a list of conditions, each a list as on a command line (one without faults unless given), `labelled`
the number of rows that have labels, drawn for every seed (all unless given), `change` {setting: value}. A trial trains
all its conditions and seeds on five sixths of the training rows, is scored on the rest (which they are depends on the
data set and its split alone), and appends one line of JSON. `split_seeds` N repeats that on the training rows of N
splits by the rule `split`, those with the seeds 1000 .. 1000 + N - 1, which no report uses; without it the split is the
data set's own with the seed 0. Where `split` is "subject", people are held out, else rows. Trials that differ only in
what replicas of a stack may differ in (learning rates, dropout) run as one stack. Trials that the output already has
are left out.
"""

import argparse
import dataclasses
import functools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data import VerticalData, load
from dvfl.data.outages import read_outages
from dvfl.data.sets.sources import read_arrays
from dvfl.data.split.splits import hold_out_by_subject
from dvfl.data.split.vertical import SplitRule, limited_intersection
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.parties.numerics.learner import Learner
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.settings.training import AnySettings, SplitSettings
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset

Scores = NDArray[np.float64]
FIRST_SPLIT = 1000
ENCODERS: dict[str, list[Tensor]] = {}  # parameters of trained guests and hosts


def splits(trial: dict[str, Any]) -> list[tuple[SplitRule | None, int]]:
    """Rule and seed of each split that a trial is repeated on."""
    seeds = range(FIRST_SPLIT, FIRST_SPLIT + trial["split_seeds"]) if "split_seeds" in trial else [0]
    return [(trial.get("split"), seed) for seed in seeds]


def held_out(name: str, rule: SplitRule | None, seed: int, data_dir: Path | None) -> VerticalData:
    """The training rows of a split alone, a sixth of them in the place of the test rows."""
    data = load(name, data_dir=data_dir, split=rule, split_seed=seed)
    units = np.arange(data.rows)
    if rule == "subject":  # a sixth of the people, as the split itself holds out people
        arrays = read_arrays(name, data_dir)
        subjects = arrays["subject_id"].astype(np.int64)
        units = subjects[hold_out_by_subject(subjects, arrays["y"].astype(np.int64), seed)[0]]
    shuffle = numpy_generator(seed, "tuning", name).permutation(np.unique(units))
    held = np.isin(units, shuffle[: len(shuffle) // 6])
    guests = tuple(dataclasses.replace(g, train=g.train[~held], test=g.train[held]) for g in data.guests)
    return dataclasses.replace(data, guests=guests, y_train=data.y_train[~held], y_test=data.y_train[held])


def limited(data: VerticalData, trial: dict[str, Any], seed: int) -> VerticalData:
    """The data with as few labels as a trial wants."""
    return limited_intersection(data, trial["labelled"], seed) if "labelled" in trial else data


def changed(settings: AnySettings, change: dict[str, Any]) -> AnySettings:
    """The settings with some replaced; rules are given as {"name": "adam", "rate": ..}, merged into the preset's."""
    plain = settings.as_dict()
    for name, value in change.items():
        if isinstance(value, dict) and value.get("name", plain[name]["name"]) == plain[name]["name"]:
            value = {**plain[name], **value}
        plain[name] = value
    return type(settings).from_dict(plain)


def alike(trial: dict[str, Any], settings: AnySettings) -> str:
    """The same for trials that can share a stack."""
    split = isinstance(settings, SplitSettings)
    free = ("dropout", "guest_noise") if split else ("owner_dropout",)
    plain = {name: value for name, value in settings.as_dict().items() if name not in free}
    varying = ("guest_rule", "host_rule") if split else ("owner_rule",)
    for name in varying:
        plain[name] = {**plain[name], "rate": 0.0}
    where = {name: value for name, value in trial.items() if name != "change"}
    return json.dumps([where, plain], sort_keys=True)


def run(trials: list[dict[str, Any]], settings: list[AnySettings], data: VerticalData, device: str) -> Scores:
    """Trains trials as one stack: (trials, conditions, seeds)."""
    first = trials[0]
    conditions = [Faults.parse(texts, read_outages) for texts in first.get("faults", [[]])]
    seeds = list(range(first["seeds"]))
    each = len(conditions) * len(seeds)
    given = [limited(data, first, seed) for seed in seeds]
    make = functools.partial(STRATEGIES.find(first.get("strategy", "dvfl")), device=device)
    simulation = make(
        given * len(conditions) * len(trials),
        [one for one in settings for _ in range(each)],
        seeds * len(conditions) * len(trials),
        faults=[condition for condition in conditions for _ in seeds] * len(trials),
    )
    if isinstance(simulation, Dvfl):
        key = json.dumps(
            [str(data.split), first.get("labelled"), first["seeds"], first.get("faults"), before_owner(settings[0])]
        )
        if key not in ENCODERS:
            alone = make(
                given * len(conditions),
                settings[0],
                seeds * len(conditions),
                faults=[one for one in conditions for _ in seeds],
            )
            assert isinstance(alone, Dvfl)
            while alone.phase != "owner":
                alone.advance()
            ENCODERS[key] = [learner.parameters for learner in encoders(alone)]
        for learner, trained in zip(encoders(simulation), ENCODERS[key], strict=True):
            learner.parameters.copy_(trained.repeat(len(trials), 1))
        own = simulation.settings
        simulation.guests.epoch, simulation.hosts.epoch = own.guest_epochs, own.host_epochs
    simulation.run()
    return simulation.scores().reshape(len(trials), len(conditions), len(seeds))


def before_owner(settings: AnySettings) -> dict[str, Any]:
    """What guests and hosts learn by: trials of DVFL that differ in the owner alone share them, trained once a seed."""
    owners = ("standardise", "host_dropout", "validation", "patience", "head", "copies", "smoothing", "partial")
    plain = settings.as_dict()
    return {name: plain[name] for name in plain if not name.startswith("owner_") and name not in owners}


def encoders(simulation: Dvfl) -> list[Learner]:
    """The learners of all guests and hosts."""
    stack = simulation.stack
    parties = [*(group.guest for group in stack.groups), stack.host]
    return [party.learner for party in parties if isinstance(party, Guest | Host)]


def line(trial: dict[str, Any], scores: Scores, seconds: float) -> dict[str, Any]:
    """What is written down of a trial; `scores` is (splits, conditions, seeds), and rows of the line are conditions."""
    rows = scores.transpose(1, 0, 2).reshape(scores.shape[1], -1)
    return {
        **trial,
        "held_out_mean": round(float(rows.mean()), 4),
        "means": [round(float(mean), 4) for mean in rows.mean(1)],
        "scores": [[round(float(score), 2) for score in row] for row in rows],
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    read = functools.cache(functools.partial(held_out, data_dir=arguments.data_dir))
    done = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    known = [json.loads(text) for text in done]
    stacks: dict[str, list[tuple[dict[str, Any], AnySettings]]] = {}
    for trial in json.loads(arguments.trials.read_text()):
        if any(all(line.get(key) == value for key, value in trial.items()) for line in known):
            continue
        example = limited(read(trial["dataset"], *splits(trial)[0]), trial, 0)
        base = preset(trial["preset"], example, trial.get("strategy", "dvfl"))
        wanted = changed(base, trial.get("change", {}))
        stacks.setdefault(alike(trial, wanted), []).append((trial, wanted))
    shared = ""
    for stack in sorted(stacks.values(), key=lambda stack: json.dumps(before_owner(stack[0][1]))):
        if shared != (shared := json.dumps([stack[0][0]["dataset"], before_owner(stack[0][1])])):
            ENCODERS.clear()
        trials, settings = [trial for trial, _ in stack], [one for _, one in stack]
        start = time.perf_counter()
        tables = [read(trials[0]["dataset"], *split) for split in splits(trials[0])]
        scores = np.stack([run(trials, settings, data, arguments.device) for data in tables], 1)
        seconds = (time.perf_counter() - start) / len(trials)
        lines = [line(trial, own, seconds) for trial, own in zip(trials, scores, strict=True)]
        for each in lines:
            print(json.dumps({key: each[key] for key in each if key not in ("scores", "faults")}), flush=True)
        with arguments.out.open("a") as file:
            file.writelines(json.dumps(each) + "\n" for each in lines)


if __name__ == "__main__":
    main()
