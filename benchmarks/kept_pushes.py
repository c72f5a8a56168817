"""What a host gains that keeps every row's encodings of several epochs, and does not attack the last ones alone.

    python benchmarks/kept_pushes.py --small --data-dir DIR --out kept_pushes.json

Guests push in every epoch unless told otherwise, by encoders that change: a host can lay all encodings of a row side by
side. Figures are R2 of the victims' columns, rows that were trained on, by the strongest way at each number of known
rows, for the last encodings alone and for those of several epochs. Encoders do not depend on hosts and owner, so there
are none here, and no accuracy.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dvfl.audit.attacks import inversion
from dvfl.audit.defences import DEFENCES as KNOWN_DEFENCES
from dvfl.audit.readers.readers import SMALL, Effort
from dvfl.audit.recordings.cases import Case, recording_of
from dvfl.audit.recordings.recording import Recording
from dvfl.data import load
from dvfl.data.split.vertical import fewer_rows
from dvfl.files import write_json
from dvfl.settings.training import Settings
from dvfl.simulation.simulation import Simulation
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.presets import preset

DEFENCES = ("none", "narrow", "simclr", "adversary")
KNOWN = (50, 1000)
EPOCHS = (1, 2, 5, 10)  # whose encodings are kept beside those of the last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--rows", type=int, help="to train on")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--small", action="store_true", help="attackers that try less hard, for CPUs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    data = fewer_rows(load(given.dataset, data_dir=given.data_dir), given.rows)
    settings = preset("tuned", data)
    case = Case("dvfl", data, settings, tuple(range(given.seeds)), torch.device(given.device))
    sent = recording_of(case.simulation(), "untrained")  # for the widths of encodings alone
    effort = replace(SMALL if given.small else Effort(), known=KNOWN)
    lines: list[dict[str, Any]] = []
    for name in DEFENCES:
        begun = time.perf_counter()
        changed = settings if name == "none" else KNOWN_DEFENCES[name].change(settings, sent)
        assert isinstance(changed, Settings)
        pushes = kept(case.changed(settings=replace(changed, hosts=0, owner_epochs=1)))
        seconds = {"training": round(time.perf_counter() - begun, 1)}
        about = {"dataset": data.name, "rows": data.rows, "seeds": given.seeds, "small": given.small, "defence": name}
        for saw, recording in (("last", pushes[-1]), ("several", side_by_side(pushes))):
            begun = time.perf_counter()
            strongest = inversion.strongest(inversion.measure(recording, effort))
            seconds["attack"] = round(time.perf_counter() - begun, 1)
            leaks = {str(one.known): {"r2": list(one.values), "way": one.way} for one in strongest}
            lines.append({**about, "epochs": saw, "known": leaks, "seconds": dict(seconds)})
            print(json.dumps(lines[-1]), flush=True)
            write_json(given.out, lines)


def kept(case: Case) -> list[Recording]:
    """What guests would send at the end of some epochs and of the last."""
    pushes: dict[int, Recording] = {}

    def look(simulation: Simulation) -> None:
        assert isinstance(simulation, Dvfl)
        epoch = simulation.guests.epoch
        if epoch not in pushes and epoch in (*EPOCHS, simulation.settings.guest_epochs):
            pushes[epoch] = recording_of(simulation, case.strategy)

    case.trained(after_epoch=look)
    return list(pushes.values())


def side_by_side(pushes: list[Recording]) -> Recording:
    """All encodings of a row, of one guest, as if they were one."""
    guests = zip(*(one.guests for one in pushes), strict=True)
    return pushes[-1].with_encodings(torch.cat([guest.z for guest in each], 2) for each in guests)


if __name__ == "__main__":
    main()
