"""How long whole audits of MNIST and Credit Card take, side by side: every attack and defence, DVFL beside SplitNN.

    python benchmarks/full_audit.py --data-dir DIR --out DIR --encoders     # where opacus is: what needs it, ahead
    python benchmarks/full_audit.py --data-dir DIR --out DIR --device cuda  # all else, on a GPU machine without opacus
    python benchmarks/full_audit.py --data-dir DIR --out DIR --small        # attackers that try less hard, two cores

Each set is a `dvfl train --record` and a `dvfl audit` of it, in DIR/runs and DIR/audits. What was stopped goes on where
it was; every sitting is a line of DIR/sittings.jsonl, with the seconds from its beginning until both sets were done.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch

from dvfl.audit.audit import PARTS, Trained, subjects
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.cases import Case
from dvfl.data import load
from dvfl.reproduce.workers import machine
from dvfl.runs.run_folder import CONFIG, RESULT, versions
from dvfl.strategies.presets import preset

SETS = ("mnist", "credit_card")
SEEDS = 5
SMALL_SEEDS, SMALL_ROWS = 2, 1500  # with fewer rows no attacker could know 1,000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--encoders", action="store_true", help="train what needs opacus, and nothing else")
    parser.add_argument("--one-by-one", action="store_true", help="not side by side")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.encoders and given.small:
        parser.error("--encoders: a small audit trains its own where opacus is; without --small is right")
    given.out.mkdir(parents=True, exist_ok=True)
    work: Callable[[str], float] = partial(_timed, _keep_encoders if given.encoders else _audit, given)
    begun = time.perf_counter()
    with ThreadPoolExecutor(1 if given.one_by_one else len(SETS)) as pool:
        each = dict(zip(SETS, pool.map(work, SETS), strict=True))
    sitting = {
        "command": shlex.join(["python", *_without_places(sys.argv)]),
        "seconds": round(time.perf_counter() - begun, 1),
        "each": each,
        "machine": machine(given.device),
        "versions": versions(),
    }
    print(json.dumps(sitting))
    with (given.out / "sittings.jsonl").open("a") as file:
        file.write(json.dumps(sitting) + "\n")


def _timed(work: Callable[[argparse.Namespace, str], None], given: argparse.Namespace, name: str) -> float:
    begun = time.perf_counter()
    work(given, name)
    return round(time.perf_counter() - begun, 1)


def _audit(given: argparse.Namespace, name: str) -> None:
    """Trains, unless that is done, and audits."""
    run = given.out / "runs" / name
    places = ["--data-dir", str(given.data_dir)] if given.data_dir else []
    common = ["--device", given.device, *places]
    seeds = SMALL_SEEDS if given.small else SEEDS
    if (run / CONFIG).is_file() and not (run / RESULT).is_file():
        _dvfl(given, name, "train", "--resume", "--out", run)
    elif not (run / RESULT).is_file():
        rows = ["--rows", SMALL_ROWS] if given.small else []
        _dvfl(given, name, "train", "--dataset", name, "--seeds", seeds, *rows, "--record", *common, "--out", run)
    small = ["--small"] if given.small else []
    _dvfl(given, name, "audit", run, *small, *common, "--out", given.out / "audits" / name)


def _dvfl(given: argparse.Namespace, name: str, *words: object) -> None:
    """Runs a command; its progress is in DIR/NAME.log."""
    with (given.out / f"{name}.log").open("a") as log:
        command = [sys.executable, "-m", "dvfl", *map(str, words)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def _keep_encoders(given: argparse.Namespace, name: str) -> None:
    """Trains the guests' encoders of `dp-sgd` where the audit will look for them. They need no run."""
    out = given.out / "audits" / name
    (out / PARTS).mkdir(parents=True, exist_ok=True)
    data = load(name, data_dir=given.data_dir)
    case = Case("dvfl", data, preset("tuned", data), tuple(range(SEEDS)), torch.device("cpu"))
    for subject in subjects(case, _untrained, ["dp-sgd"], Effort(), out):
        if subject.prepare is not None:
            subject.prepare()


def _untrained() -> Trained:
    raise RuntimeError("only encoders are trained here")


def _without_places(words: list[str]) -> list[str]:
    """A command without the paths of the machine that it ran on."""
    made = list(words)
    for number, word in enumerate(words):
        if word in ("--data-dir", "--out"):
            made[number + 1] = "DIR"
    return made


if __name__ == "__main__":
    main()
