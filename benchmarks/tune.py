"""Tries settings of DVFL on held-out training rows and writes every trial down. Test rows are never loaded.

    python benchmarks/tune.py TRIALS.json --out TRIALS.jsonl --data-dir DIR --device cuda

TRIALS.json is a list of {"dataset", "preset", "seeds", "change": {setting: value}}. Each trial trains on five sixths of
the training rows and is scored on the rest (the split depends on the data set alone), and appends one line of JSON.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import numpy as np

from dvfl.data import VerticalData, load
from dvfl.parties.faults import Fault
from dvfl.parties.randomness import numpy_generator
from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.presets import preset
from dvfl.strategies.settings import Settings


def held_out(data: VerticalData) -> VerticalData:
    """The training rows alone, a sixth of them in the place of the test rows."""
    shuffle = numpy_generator(0, "tuning", data.name).permutation(data.rows)
    test, train = np.sort(shuffle[: data.rows // 6]), np.sort(shuffle[data.rows // 6 :])
    guests = tuple(dataclasses.replace(g, train=g.train[train], test=g.train[test]) for g in data.guests)
    return dataclasses.replace(data, guests=guests, y_train=data.y_train[train], y_test=data.y_train[test])


def changed(settings: Settings, change: dict[str, object]) -> Settings:
    """The settings with some replaced; rules are given as {"name": "adam", "rate": ..}, merged into the preset's."""
    plain = settings.as_dict()
    for name, value in change.items():
        if isinstance(value, dict) and value.get("name", plain[name]["name"]) == plain[name]["name"]:
            value = {**plain[name], **value}
        plain[name] = value
    return Settings.from_dict(plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    loaded: dict[str, VerticalData] = {}
    for trial in json.loads(arguments.trials.read_text()):
        name = trial["dataset"]
        if name not in loaded:
            loaded[name] = held_out(load(name, data_dir=arguments.data_dir))
        data = loaded[name]
        settings = changed(preset(trial["preset"], data), trial.get("change", {}))
        faults = [Fault.parse(text) for text in trial.get("faults", [])]
        start = time.perf_counter()
        simulation = Dvfl(data, settings, range(trial["seeds"]), faults=faults, device=arguments.device)
        simulation.run()
        scores = simulation.scores()
        spread = 2 * float(scores.std(ddof=1)) if len(scores) > 1 else 0.0
        line = {
            **trial,
            "held_out_mean": round(float(scores.mean()), 4),
            "two_sigma": round(spread, 4),
            "scores": [round(float(score), 4) for score in scores],
            "seconds": round(time.perf_counter() - start, 1),
        }
        print(json.dumps({key: value for key, value in line.items() if key != "scores"}), flush=True)
        with arguments.out.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
