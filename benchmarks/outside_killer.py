"""A federation whose parties are started and killed from outside, by nothing but commands and process numbers.

    python benchmarks/outside_killer.py --data-dir DIR [--rows 10000] [--seed 0] [--every 1.5] [--out FILE]

Makes a practice federation of MNIST (4 guests, 2 hosts), starts `dvfl guest|host|owner FOLDER` in any order, and from
then on sends SIGKILL to one of the parties or brokers, drawn by the seed, every so many seconds; a killed party is
started again 0 to 6 s later. It uses nothing of dvfl but its commands. Ends at the owner's result, and prints JSON.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

GUESTS, HOSTS = 4, 2
DEADLINE_S = 1200.0


class Outside:
    """Processes by the names of their folders."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.luck = folder, random.Random(seed)
        self.kinds = {path.name: path.name.split("-")[0] for path in folder.iterdir() if (path / "party.toml").exists()}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.due: dict[str, float] = {}  # when a killed party is started again
        self.kills: Counter[str] = Counter()
        self.ended: list[str] = []  # parties that ended by themselves
        for name in self.luck.sample(sorted(self.kinds), len(self.kinds)):
            self.start(name)

    def start(self, name: str) -> None:
        with open(self.folder / f"{name}.out", "ab") as output:
            command = [sys.executable, "-m", "dvfl", self.kinds[name], str(self.folder / name)]
            self.running[name] = subprocess.Popen(command, stdout=output, stderr=output)

    def look(self) -> None:
        """Starts who is due, and notes who ended without being killed."""
        for name in [name for name, due in self.due.items() if due <= time.monotonic()]:
            del self.due[name]
            self.start(name)
        for name, process in self.running.items():
            if name not in self.due and process.poll() is not None:
                self.ended.append(f"{name}: status {process.returncode}")
                self.due[name] = time.monotonic() + 1.0

    def kill_somebody(self) -> None:
        kind = self.luck.choice(["guest", "host", "owner", "broker"])
        names = [name for name, own in self.kinds.items() if own == ("host" if kind == "broker" else kind)]
        name = self.luck.choice(sorted(names))
        if name in self.due:
            return
        pid: int | None = self.running[name].pid
        if kind == "broker":
            pid = child(self.running[name].pid)
        if pid is None:
            return
        os.kill(pid, signal.SIGKILL)
        self.kills[kind] += 1
        if kind != "broker":
            self.running[name].wait()
            self.due[name] = time.monotonic() + max(0.0, self.luck.uniform(-3.0, 6.0))

    def leave(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        for process in self.running.values():
            process.wait(30)


def child(pid: int) -> int | None:
    """The process that a host started: its broker, where there is one just now."""
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):  # any of its threads may have started it
        with suppress(OSError):
            for found in thread.read_text().split():
                return int(found)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=1.5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "practice"
        options = ["--dataset", "mnist", "--guests", str(GUESTS), "--hosts", str(HOSTS), "--rows", str(arguments.rows)]
        options += ["--data-dir", str(arguments.data_dir)] if arguments.data_dir else []
        command = [sys.executable, "-m", "dvfl", "federation", "init", str(folder), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        outside, begin = Outside(folder, arguments.seed), time.monotonic()
        result = folder / "owner" / "result.json"
        try:
            kill = begin + 10.0  # for Python and PyTorch to load seven times
            while not result.exists() and time.monotonic() < begin + DEADLINE_S:
                outside.look()
                if time.monotonic() >= kill:
                    outside.kill_somebody()
                    kill += arguments.every
                time.sleep(0.1)
        finally:
            outside.leave()
        found: dict[str, Any] = {"rows": arguments.rows, "seed": arguments.seed, "kills": dict(outside.kills)}
        found |= {"seconds": round(time.monotonic() - begin, 1), "ended_by_themselves": outside.ended}
        found["result"] = json.loads(result.read_text()) if result.exists() else None
    text = json.dumps(found, indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n")
    sys.exit(0 if found["result"] else 1)


if __name__ == "__main__":
    main()
