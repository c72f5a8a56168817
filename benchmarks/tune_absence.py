"""Tries settings for absent parties on held-out training rows and writes every trial down. Test rows are never loaded.

    python benchmarks/tune_absence.py TRIALS.json --rows 6000 --out TRIALS.jsonl --data-dir DIR

TRIALS.json is a list of {"strategy", "seeds", "change"}: `change` {setting: value} from preset `tuned` with what it has
on many rows. A trial trains on five sixths of the rows and is scored on the rest with nobody missing, with every one
and every two guests missing, and with every host missing. Trials that the output already has are left out.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from missing_parties import Scores, guest_subsets, scores
from torch import Tensor
from tune import before_owner, changed, encoders, held_out

from dvfl.data.split.vertical import VerticalData, fewer_rows
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset
from dvfl.strategies.split.split_training import EndToEnd

MANY: dict[str, dict[str, Any]] = {  # what `tuned` has from 20,000 rows on
    "dvfl": {"guest_noise": 0.2, "head": [320] * 3},
    "splitnn-zeros": {"guest_noise": 0.1, "head": [320] * 3},
}

TRAINED: dict[str, list[Tensor]] = {}  # parameters of trained guests and hosts


def line(trial: dict[str, Any], data: VerticalData, device: str) -> dict[str, Any]:
    """A trial with its scores: means over seeds and over the subsets of one kind, and the worst subset's."""
    name = trial["strategy"]
    settings = changed(preset("tuned", data, name), {**MANY[name], **trial.get("change", {})})
    start = time.perf_counter()
    training = STRATEGIES.find(name)(data, settings, range(trial["seeds"]), device=device)
    assert isinstance(training, Dvfl | EndToEnd)
    if isinstance(training, Dvfl):
        prepare(training)
    training.run()
    made = scores(training)
    guests = len(data.guests)
    means = {
        f"{guests - count} missing": [np.mean(made[f"guests {shown}"]) for shown in guest_subsets(guests, count)]
        for count in range(1, guests + 1)
    }
    means["a host missing"] = [np.mean(own) for key, own in made.items() if key.startswith("without host")]
    summary = {kind: round(float(np.mean(each)), 2) for kind, each in means.items() if each}
    worst = {f"{kind}, worst": round(float(np.min(each)), 2) for kind, each in means.items() if len(each) > 1}
    return {**trial, **summary, **worst, "scores": rounded(made), "seconds": round(time.perf_counter() - start, 1)}


def prepare(training: Dvfl) -> None:
    """Guests and hosts are trained once for all trials in a row that differ in the owner alone."""
    key = json.dumps([training.seeds, before_owner(training.settings)])
    if key not in TRAINED:
        TRAINED.clear()
        while training.phase != "owner":
            training.advance()
        TRAINED[key] = [learner.parameters.clone() for learner in encoders(training)]
    for learner, parameters in zip(encoders(training), TRAINED[key], strict=True):
        learner.parameters.copy_(parameters)
    training.guests.epoch, training.hosts.epoch = training.settings.guest_epochs, training.settings.host_epochs


def rounded(made: Scores) -> dict[str, list[float]]:
    """To hundredths of a point."""
    return {key: [round(score, 2) for score in own] for key, own in made.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    whole = held_out("mnist", None, 0, given.data_dir)
    data = fewer_rows(whole, given.rows)
    done = [json.loads(text) for text in given.out.read_text().splitlines()] if given.out.exists() else []
    for trial in json.loads(given.trials.read_text()):
        trial = {"dataset": "mnist", "rows": data.rows, **trial}
        if any(all(known.get(key) == value for key, value in trial.items()) for known in done):
            continue
        made = line(trial, data, given.device)
        print(json.dumps({key: value for key, value in made.items() if key != "scores"}), flush=True)
        with given.out.open("a") as file:
            file.write(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
