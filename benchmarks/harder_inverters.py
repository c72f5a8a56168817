"""Whether defences hold against inverters that try much harder than those of an audit.

    python benchmarks/harder_inverters.py --data-dir DIR --device cuda --out harder_inverters.json

Defences that learn to hide (`adversary`) may hide from the networks of an audit and no others. Here the same encodings
are inverted by networks about ten times as large that learn for five times as many steps. Figures are R2 of the
victims' columns, rows that were trained on; test rows serve for the accuracy alone.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from dvfl.audit.defences import DEFENCES as KNOWN_DEFENCES
from dvfl.audit.readers.alike import by_network, explained
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.cases import Case, recording_of
from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows
from dvfl.files import write_json
from dvfl.strategies.presets import preset

DEFENCES = ("none", "simclr", "adversary", "shield-0.5")
KNOWN = (1000, 10_000)
EFFORTS = {
    "audit": Effort(),
    "harder": Effort(hidden=(1024, 1024), rates=(1e-3, 3e-4), steps=6000, batch=512),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rows", type=int, help="to train on")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    data = fewer_rows(load(given.dataset, data_dir=given.data_dir), given.rows)
    device = torch.device(given.device)
    case = Case("dvfl", data, preset("tuned", data), tuple(range(given.seeds)), device)
    sent = recording_of(case.simulation(), "untrained")  # for the widths of encodings alone
    lines: list[dict[str, Any]] = []
    for name in DEFENCES:
        changed = case.settings if name == "none" else KNOWN_DEFENCES[name].change(case.settings, sent)
        simulation = case.changed(settings=changed).trained().simulation
        seen = recording_of(simulation, "dvfl")
        about = {"dataset": data.name, "rows": data.rows, "defence": name, "accuracy": simulation.scores().tolist()}
        for effort_name, effort in EFFORTS.items():
            for known in (count for count in KNOWN if count <= seen.rows.pool):
                begun = time.perf_counter()
                values = explained(seen, seen.known(known, "inversion"), by_network(effort))
                lines.append({**about, "effort": effort_name, "known": known, "r2": list(values)})
                lines[-1]["seconds"] = round(time.perf_counter() - begun, 1)
                print(json.dumps(lines[-1]), flush=True)
                write_json(given.out, lines)


if __name__ == "__main__":
    main()
