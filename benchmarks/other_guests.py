"""What a curious host gains by other guests' encodings, beside those of the guest whose columns it is after.

    python benchmarks/other_guests.py --data-dir DIR --out other_guests.json

Figures are R2 of the victims' columns, by the strongest way with one guest's encodings and by the strongest with all
guests'. Guests alone are trained (owners for one epoch, hosts pass on what they read), since nothing else is attacked.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dvfl.audit.attacks import inversion
from dvfl.audit.defences import DEFENCES
from dvfl.audit.readers.readers import SMALL, Effort
from dvfl.audit.recordings.cases import Case, recording_of
from dvfl.audit.recordings.measured import Measured
from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows
from dvfl.files import write_json
from dvfl.settings.training import Settings
from dvfl.simulation.cpu_threads import suited
from dvfl.strategies.presets import preset

KNOWN = (50, 1000, 10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rows", type=int, help="to train on")
    parser.add_argument("--defence", action="append", choices=["none", *DEFENCES], help="may repeat")
    parser.add_argument("--small", action="store_true", help="attackers that try less hard")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    data = fewer_rows(load(given.dataset, data_dir=given.data_dir), given.rows)
    settings = preset("tuned", data)
    assert isinstance(settings, Settings)
    settings = replace(settings, owner_epochs=1, host_model="concatenate", partial=0)
    case = Case("dvfl", data, settings, tuple(range(given.seeds)), torch.device(given.device))
    sent = recording_of(case.simulation(), "untrained")  # for the widths of encodings alone
    effort = replace(SMALL if given.small else Effort(), known=KNOWN)
    lines: list[dict[str, Any]] = []
    for name in given.defence or ("none", "simclr", "adversary", "shield-0.5"):
        begun = time.perf_counter()
        changed = settings if name == "none" else DEFENCES[name].change(settings, sent)
        seen = recording_of(case.changed(settings=changed).trained().simulation, "dvfl")
        with suited(case.device, 0):
            figures = inversion.measure(seen, effort)
        for known in dict.fromkeys(one.known for one in figures):
            own = [one for one in figures if one.known == known]
            alone = [one for one in own if not one.way.endswith("all guests")]
            line = {"dataset": data.name, "rows": data.rows, "defence": name, "known": known, "small": given.small}
            lines.append(
                {**line, "one": _strongest(alone), "all": _strongest([one for one in own if one not in alone])}
            )
            lines[-1]["seconds"] = round(time.perf_counter() - begun, 1)  # since the training of its guests began
            print(json.dumps(lines[-1]), flush=True)
            write_json(given.out, lines)


def _strongest(figures: Sequence[Measured]) -> dict[str, Any]:
    best = max(figures, key=lambda one: one.mean)
    return {"way": best.way, "r2": list(best.values)}


if __name__ == "__main__":
    main()
