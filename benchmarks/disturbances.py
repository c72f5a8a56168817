"""What late, reordered, repeated and wrong messages cost DVFL: MNIST, preset tuned, all conditions as one stack.

    python benchmarks/disturbances.py --out DIR --data-dir DIR --device cuda

Writes DIR/disturbances.json (every seed's test accuracy) and DIR/disturbances.md. Differences are paired by seed with
the column without faults, with their 95 % interval.
"""

import argparse
from functools import partial
from pathlib import Path

from dvfl.data.outages import read_outages
from dvfl.files import write_json, write_text
from dvfl.reproduce.blocks import Training, blocks, run, timed
from dvfl.reproduce.outcome.experiment import Source
from dvfl.reproduce.outcome.statistics import compare, summary
from dvfl.reproduce.sources import Sources
from dvfl.reproduce.workers import machine
from dvfl.runs.run_folder import versions

LATE = [
    ("delay:10",),
    ("delay:50",),
    ("reorder:10",),
    ("reorder:50",),
    ("duplicate:50",),
    ("delay:50", "reorder:50", "duplicate:50"),
    ("delay:50", "connection:0.3:0.1"),
]
HOWS = ("scale", "sign", "permute", "noise")
WRONG = [(f"corrupt:{how}:{phase}:guest-1",) for phase in ("hosts", "owner") for how in HOWS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dataset", default="mnist")
    arguments = parser.parse_args()
    sources, source = Sources(arguments.data_dir, None), Source(arguments.dataset)
    conditions: list[tuple[str, ...]] = [(), *LATE, *WRONG]
    wanted = [Training("dvfl", faults, seed, (), source) for faults in conditions for seed in range(arguments.seeds)]
    accuracy: dict[tuple[str, ...], dict[int, float | None]] = {faults: {} for faults in conditions}
    seconds = 0.0
    for block in blocks(wanted, "tuned", sources, arguments.device):
        outcomes, spent = timed(partial(run, block, "tuned", sources, arguments.device, read_outages))
        seconds += spent
        for training, outcome in zip(block, outcomes, strict=True):
            accuracy[training.faults][training.seed] = outcome.accuracy
    words = f"--dataset {arguments.dataset} --seeds {arguments.seeds} --device {arguments.device}"
    command = f"python benchmarks/disturbances.py {words}"
    lines = ["# What late and wrong messages cost DVFL", "", f"`{command} --out DIR`", ""]
    lines += ["| faults | accuracy, % | 2 sigma | minus no faults | 95 % interval |", "| --- | --- | --- | --- | --- |"]
    cells = []
    for faults, by_seed in accuracy.items():
        mean, two_sigma = summary(list(by_seed.values()))
        against = compare(by_seed, accuracy[()]) if faults else None
        name = ", ".join(faults) or "none"
        rest = f"{against.difference:+.2f} | {against.low:+.2f} to {against.high:+.2f}" if against else "| "
        lines.append(f"| {name} | {mean:.2f} | {two_sigma:.2f} | {rest} |")
        cells.append({"faults": list(faults), "accuracy": list(by_seed.values()), "mean": mean, "two_sigma": two_sigma})
    plain = {"command": command, "machine": machine(arguments.device), "versions": versions(), "seconds": seconds}
    what = {"preset": "tuned", "dataset": arguments.dataset}
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_json(arguments.out / "disturbances.json", {**plain, **what, "cells": cells})
    write_text(arguments.out / "disturbances.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
