"""Real parties that are killed while they align: in every seeded schedule all slots must come out right.

    python benchmarks/alignment_kills.py --schedules 20 --ids 2000

Four guests, two hosts with their brokers and the owner are processes of their own; each of the five that have ids holds
60 % of the people. From the first letter on, one after the other is killed (SIGKILL) at moments drawn by the seed and
started again, `--kills` times. Then every party's slots are compared with the ids. Prints one JSON object for each
schedule, and one for all.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dvfl.federation.custody.founding import OWNER, Founding, found
from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.party.settings import Alignment, GuestEntry, Way
from dvfl.orders.preset_settings import settings_for

GUESTS, HOSTS = tuple(f"guest-{i}" for i in range(1, 5)), ("host-1", "host-2")
PRESENT = 0.6
PATIENCE_S = 300.0


def made(folder: Path, ids: int, seed: int, way: Way) -> dict[str, set[str]]:
    """A federation whose parties each have that many ids, 60 % of all people; who has whom."""
    training, head = settings_for("tuned", 0, None)
    founding = Founding(
        name="kills",
        guests=dict.fromkeys(GUESTS, GuestEntry(1)),
        hosts=HOSTS,
        training=training,
        head=head,
        tests=False,
        about={},
        alignment=Alignment(way),
    )
    found(folder, founding)
    draw = np.random.default_rng(seed)
    people = np.array([f"P{number:015x}" for number in draw.permutation(10**6)[: round(ids / PRESENT)]], object)
    have = {party: draw.permutation(people)[:ids] for party in (*GUESTS, OWNER)}
    for guest in GUESTS:
        table = pd.DataFrame({"id": have[guest], "a": draw.normal(size=ids)})
        table.to_parquet(folder / guest / "table.parquet", index=False)
    labels = pd.DataFrame({"id": have[OWNER], "label": draw.integers(2, size=ids)})
    labels.to_parquet(folder / OWNER / "labels.parquet", index=False)
    return {party: set(ids.tolist()) for party, ids in have.items()}


class Run:
    """Hosts and guests as services, and `dvfl align` at the owner, which is started again when it is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.parties = folder, Supervisor(folder)
        self.restarts = 0

    def start(self) -> None:
        for party in (*HOSTS, *GUESTS):
            self.parties.start_party(party)
        self.start_owner()

    def start_owner(self) -> None:
        command = [sys.executable, "-m", "dvfl", "align", str(self._folder / OWNER)]
        with (self._folder / OWNER / "log.txt").open("ab") as log:
            self.owner = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, party: str) -> None:
        process = self.owner if party == OWNER else self.parties.processes[party]
        process.kill()
        process.wait()
        self.restarts += 1
        if party == OWNER:
            self.start_owner()
        else:
            self.parties.start_party(party)

    def stop(self) -> None:
        self.owner.kill()
        self.owner.wait()
        self.parties.stop()

    def began(self) -> bool:
        """Whether the owner holds a first chunk."""
        return any((self._folder / OWNER / "state").glob("align.0.held.*"))


def schedule(ids: int, seed: int, way: Way, kills: int) -> dict[str, Any]:
    """One run; raises where it does not end right."""
    luck = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "kills"
        have = made(folder, ids, seed, way)
        run, began = Run(folder), time.monotonic()
        killed: list[str] = []
        try:
            run.start()
            while run.owner.poll() is None:
                if len(killed) < kills and run.began():
                    time.sleep(luck.random() * 0.8)
                    if run.owner.poll() is not None:
                        break
                    killed.append(luck.choice((*GUESTS, *HOSTS, OWNER)))
                    run.kill(killed[-1])
                assert time.monotonic() - began < PATIENCE_S, f"seed {seed}: not aligned in time"
                time.sleep(0.02)
            assert run.owner.returncode == 0, (folder / OWNER / "log.txt").read_text()
        finally:
            run.stop()
        wrong = compared(folder, have, way)
        return {"seed": seed, "killed": killed, "seconds": round(time.monotonic() - began, 1), "wrong": wrong}


def compared(folder: Path, have: dict[str, set[str]], way: Way) -> int:
    """How many ids have not the slot that they should have."""
    known = {party: pd.read_parquet(folder / party / "state" / "slots.parquet") for party in have}
    slots = {party: dict(zip(table["id"], table["slot"], strict=True)) for party, table in known.items()}
    wrong = sum(
        len(set(slots[guest]) ^ have[guest]) + len(slots[guest]) - len(set(slots[guest].values())) for guest in GUESTS
    )
    everybody = set().union(*(have[guest] for guest in GUESTS))
    wrong += len(set(slots[OWNER]) ^ (have[OWNER] & everybody))
    parties = (*GUESTS, OWNER)
    for one in everybody:
        found = {slots[party][one] for party in parties if one in slots[party]}
        shared = way == "union" or one in have[OWNER]  # a star does not match guests with each other
        wrong += shared and len(found) != 1
    by_slot: dict[int, set[str]] = {}
    for party in parties:
        for one, slot in slots[party].items():
            by_slot.setdefault(slot, set()).add(one)
    return wrong + sum(len(ids) > 1 for ids in by_slot.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--ids", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--way", choices=("union", "star"), default="union")
    arguments = parser.parse_args()
    right, kills = 0, 0
    for seed in range(arguments.schedules):
        outcome = schedule(arguments.ids, seed, arguments.way, arguments.kills)
        print(json.dumps(outcome), flush=True)
        right += not outcome["wrong"]
        kills += len(outcome["killed"])
    print(json.dumps({"way": arguments.way, "schedules": arguments.schedules, "right": right, "kills": kills}))


if __name__ == "__main__":
    main()
