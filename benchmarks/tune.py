"""Tries settings on held-out training rows and writes every trial down. Test rows are never loaded.

    python benchmarks/tune.py TRIALS.json --out TRIALS.jsonl --data-dir DIR --device cuda

TRIALS.json is a list of {"dataset", "strategy", "preset", "seeds", "faults", "labelled", "change"}: `faults` a list of
conditions, each a list as on a command line (one without faults unless given), `labelled` the number of rows that have
labels, drawn for every seed (all unless given), `change` {setting: value}. A trial trains all its conditions and seeds
on five sixths of the training rows, is scored on the rest (the split depends on the data set alone), and appends one
line of JSON. Trials that differ only in what replicas of a stack may differ in (learning rates,
dropout) run as one stack. Trials that the output already has are left out.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from dvfl.data import VerticalData, load
from dvfl.data.outages import read_outages
from dvfl.data.vertical import limited_intersection
from dvfl.parties.faults import Faults
from dvfl.parties.randomness import numpy_generator
from dvfl.strategies import strategy
from dvfl.strategies.presets import preset
from dvfl.strategies.settings import AnySettings, SplitSettings


def held_out(data: VerticalData) -> VerticalData:
    """The training rows alone, a sixth of them in the place of the test rows."""
    shuffle = numpy_generator(0, "tuning", data.name).permutation(data.rows)
    test, train = np.sort(shuffle[: data.rows // 6]), np.sort(shuffle[data.rows // 6 :])
    guests = tuple(dataclasses.replace(g, train=g.train[train], test=g.train[test]) for g in data.guests)
    return dataclasses.replace(data, guests=guests, y_train=data.y_train[train], y_test=data.y_train[test])


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


def run(trials: list[dict[str, Any]], settings: list[AnySettings], data: VerticalData, device: str) -> list[Any]:
    """Trains trials as one stack; their lines."""
    first = trials[0]
    conditions = [Faults.parse(texts, read_outages) for texts in first.get("faults", [[]])]
    seeds = list(range(first["seeds"]))
    each = len(conditions) * len(seeds)
    start = time.perf_counter()
    given = [limited(data, first, seed) for seed in seeds]
    simulation = strategy(first.get("strategy", "dvfl"))(
        given * len(conditions) * len(trials),
        [one for one in settings for _ in range(each)],
        seeds * len(conditions) * len(trials),
        faults=[condition for condition in conditions for _ in seeds] * len(trials),
        device=device,
    )
    simulation.run()
    scores = simulation.scores().reshape(len(trials), len(conditions), len(seeds))
    seconds = (time.perf_counter() - start) / len(trials)
    return [
        {
            **trial,
            "held_out_mean": round(float(own.mean()), 4),
            "means": [round(float(mean), 4) for mean in own.mean(1)],
            "scores": [[round(float(score), 2) for score in row] for row in own],
            "seconds": round(seconds, 1),
        }
        for trial, own in zip(trials, scores, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    loaded: dict[str, VerticalData] = {}
    done = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    known = [json.loads(line) for line in done]
    stacks: dict[str, list[tuple[dict[str, Any], AnySettings]]] = {}
    for trial in json.loads(arguments.trials.read_text()):
        if any(all(line.get(key) == value for key, value in trial.items()) for line in known):
            continue
        name = trial["dataset"]
        if name not in loaded:
            loaded[name] = held_out(load(name, data_dir=arguments.data_dir))
        base = preset(trial["preset"], limited(loaded[name], trial, 0), trial.get("strategy", "dvfl"))
        settings = changed(base, trial.get("change", {}))
        stacks.setdefault(alike(trial, settings), []).append((trial, settings))
    for stack in stacks.values():
        trials, settings = [trial for trial, _ in stack], [one for _, one in stack]
        lines = run(trials, settings, loaded[trials[0]["dataset"]], arguments.device)
        for line in lines:
            print(json.dumps({key: line[key] for key in line if key not in ("scores", "faults")}), flush=True)
        with arguments.out.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
