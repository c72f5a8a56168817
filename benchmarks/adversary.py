"""What guests that learn against a decoder keep to themselves, and what it costs, on held-out training rows.

    python benchmarks/adversary.py --rows 8000 --small --data-dir DIR --out docs/tuning/adversary.jsonl

Every defence is trained with every weight of the adversary. Each line of the output has its held-out accuracies and the
share of columns' variance that a host reconstructs, by the strongest way at that number of known rows. Test rows have
no part in it. Lines that the output already has are left out.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tune import held_out

from dvfl.audit.attacks import inversion
from dvfl.audit.defences import DEFENCES as KNOWN_DEFENCES
from dvfl.audit.readers.readers import SMALL, Effort
from dvfl.audit.recordings.cases import Case, recording_of
from dvfl.data.split.vertical import VerticalData, fewer_rows
from dvfl.settings.training import Settings
from dvfl.strategies.presets import preset

DEFENCES = ("simclr", "shield-0.5")
WEIGHTS = (0.0, 0.03, 0.1, 0.3, 0.5, 1.0, 3.0)
KNOWN = (50, 1000)
TESTS = 2000  # held-out rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rows", type=int, help="to train on")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--defence", action="append", choices=list(KNOWN_DEFENCES))
    parser.add_argument("--weight", action="append", type=float)
    parser.add_argument("--small", action="store_true", help="attackers that try less hard, for CPUs")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    data = fewer_tests(fewer_rows(held_out(given.dataset, None, 0, given.data_dir), given.rows))
    settings = preset("tuned", data)
    untrained = Case("dvfl", data, settings, tuple(range(given.seeds)), torch.device(given.device))
    sent = recording_of(untrained.simulation(), "untrained")  # for the widths of encodings alone
    effort = replace(SMALL if given.small else Effort(), known=KNOWN)
    written = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    for name in given.defence or DEFENCES:
        for weight in given.weight or WEIGHTS:
            about = {"dataset": given.dataset, "rows": data.rows, "defence": name, "adversary": weight}
            about |= {"seeds": given.seeds, "small": given.small}
            if any(about.items() <= line.items() for line in written):
                continue
            changed = KNOWN_DEFENCES[name].change(settings, sent)
            assert isinstance(changed, Settings)
            line = about | measured(untrained.changed(settings=replace(changed, adversary=weight)), effort)
            print(json.dumps(line), flush=True)
            with given.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


def fewer_tests(data: VerticalData) -> VerticalData:
    """The first of the rows that a training is scored on."""
    guests = tuple(replace(guest, test=guest.test[:TESTS]) for guest in data.guests)
    return replace(data, guests=guests, y_test=data.y_test[:TESTS])


def measured(case: Case, effort: Effort) -> dict[str, Any]:
    """A case trained and attacked."""
    start = time.perf_counter()
    simulation = case.trained().simulation
    scores = [round(float(score), 2) for score in simulation.scores()]
    strongest = inversion.strongest(inversion.measure(recording_of(simulation, case.strategy), effort))
    leaks = {str(one.known): round(one.mean, 4) for one in strongest}
    ways = {str(one.known): one.way for one in strongest}
    seconds = round(time.perf_counter() - start, 1)
    return {"scores": scores, "r2": leaks, "ways": ways, "seconds": seconds}


if __name__ == "__main__":
    main()
