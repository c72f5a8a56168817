"""What the strengths of SimCLR's altered copies are worth, one changed at a time, on held-out training rows.

    python benchmarks/altered_copies.py --dataset mnist --rows 10000 --data-dir DIR --out FILE.jsonl

Guests train as in the paper's SimCLR runs (preset `paper`, no host). Their encodings are standardised and the owner's
rate decays, or its luck would hide theirs. Each line of the output is one variant with its held-out accuracies.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tune import held_out

from dvfl.data.split.vertical import fewer_rows
from dvfl.parties.objectives import warps
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset

# Constants of dvfl.parties.objectives.warps, or settings.
VARIANTS: list[dict[str, Any]] = [
    {},
    {"_TURNED": 0.0},
    {"_STRETCHED": 0.0},
    {"_SLANTED": 0.0},
    {"_ACROSS": 1 / 28},
    {"_DOWN": 0.0},
    {"_BENT": 0.0},
    {"_LIGHTER": 0.0},
    {"_LIGHTER": 0.6},
    {"temperature": 0.2},
    {"guest_objective": "reconstruction"},
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    data = fewer_rows(held_out(given.dataset, None, 0, given.data_dir), given.rows)
    paper = preset("paper", data, guest_objective="simclr")
    assert isinstance(paper, Settings)
    usual = replace(paper, standardise=True, validation=0.0, owner_epochs=30, owner_schedule="cosine")
    for variant in VARIANTS:
        start = time.perf_counter()
        constants = {name: value for name, value in variant.items() if name.startswith("_")}
        before = {name: getattr(warps, name) for name in constants}
        for name, value in constants.items():
            setattr(warps, name, value)
        settings = replace(usual, **{name: value for name, value in variant.items() if name not in constants})
        simulation = Dvfl(data, settings, range(given.seeds), device=given.device)
        simulation.run()
        for name, value in before.items():
            setattr(warps, name, value)
        scores = [round(float(score), 2) for score in simulation.scores()]
        line = {"dataset": given.dataset, "rows": data.rows, "variant": variant, "scores": scores}
        line |= {"mean": round(sum(scores) / len(scores), 3), "seconds": round(time.perf_counter() - start, 1)}
        print(json.dumps(line), flush=True)
        with given.out.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
