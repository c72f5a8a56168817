"""What real parties reach beside the simulator: the same data, preset, hosts and seeds, one pair a seed.

    python benchmarks/federation_accuracy.py --data-dir DIR [--rows 10000] [--seeds 3] [--out FILE]

Trains MNIST (4 guests, 2 hosts, preset tuned) with `dvfl train`, with batch and with row registers, and then once a
seed with `dvfl federation init` and `up`. Prints JSON: accuracies by seed, and the federation's mean lead over each
with the half width of its 95 % interval.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dvfl.files import write_json

GUESTS, HOSTS = 4, 2


def dvfl(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "dvfl", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def simulated(registers: str, seeds: int, data: list[str], folder: Path) -> list[float]:
    options = ["--hosts", str(HOSTS), "--seeds", str(seeds), "--registers", registers, "--quiet"]
    dvfl("train", *data, *options, "--out", folder)
    accuracy: list[float] = json.loads((folder / "result.json").read_text())["accuracy"]
    return accuracy


def federated(seed: int, data: list[str], folder: Path) -> float:
    dvfl("federation", "init", folder, *data, "--hosts", str(HOSTS), "--seed", str(seed))
    dvfl("federation", "up", folder)
    accuracy: float = json.loads((folder / "owner" / "result.json").read_text())["accuracy_mean"]
    return accuracy


def lead(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """The mean difference in points, and the half width of its interval (paired t)."""
    difference = np.subtract(ours, theirs)
    half = stats.t.ppf(0.975, len(difference) - 1) * stats.sem(difference) if len(difference) > 1 else np.nan
    return {"mean": float(difference.mean()), "half_width": float(half)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    data = ["--dataset", "mnist", "--guests", str(GUESTS), "--rows", str(arguments.rows)]
    data += ["--data-dir", str(arguments.data_dir)] if arguments.data_dir else []
    found: dict[str, Any] = {"rows": arguments.rows, "seeds": list(range(arguments.seeds))}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for registers in ("batch", "row"):
            found[f"simulator_{registers}"] = simulated(registers, arguments.seeds, data, folder / registers)
        found["federation"] = [federated(seed, data, folder / f"practice-{seed}") for seed in found["seeds"]]
    for registers in ("batch", "row"):
        found[f"lead_over_{registers}"] = lead(found["federation"], found[f"simulator_{registers}"])
    print(json.dumps(found))
    if arguments.out is not None:
        write_json(arguments.out, found)


if __name__ == "__main__":
    main()
