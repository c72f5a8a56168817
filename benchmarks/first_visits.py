"""How far a reader travels who follows `dvfl train --dataset digits`: the functions in the order of their first calls.

    python benchmarks/first_visits.py
    python benchmarks/first_visits.py --revision 9a78955 --json
    python benchmarks/first_visits.py --list

A training runs to its end in a process of its own, with `--quiet` and a temporary `--out`. Counted are the functions
and methods defined in `src/dvfl`, nested ones too, on all threads, from `dvfl.cli.main` on. Left out are modules, class
bodies, lambdas, comprehensions, generated code, and whatever runs while a module is being imported. The package of a
function is the second part of its module's name; modules directly in `dvfl` are all in `dvfl`.

A change of package is counted wherever two functions that follow each other in that order have different packages.
Threads take turns, so that figure may differ by a few from run to run, and one core takes a path of its own.

At revision 9a78955 this gives 61 files, 383 functions and 115 changes, with Python 3.11 on two cores. A review measured
62, 379 and 123 there, and did not say how. With calls while modules are imported it would be 62, 385 and 118.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from code_shape import open_source


class Walk:
    """The functions of a folder in the order of their first calls; an object of it is a hook for `sys.setprofile`."""

    def __init__(self, source: Path) -> None:
        self._prefix = f"{source}{os.sep}"
        self._visited: set[CodeType] = set()
        self._thread = threading.local()  # how many imports each thread is in
        self.steps: list[tuple[str, str]] = []  # file and function

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event in ("call", "return") and code.co_name == "<module>":
            self._thread.imports = self._imports() + (1 if event == "call" else -1)
        elif event == "call" and code not in self._visited and self._is_function(code) and not self._imports():
            self._visited.add(code)
            self.steps.append((code.co_filename.removeprefix(self._prefix), code.co_qualname))

    def _imports(self) -> int:
        return getattr(self._thread, "imports", 0)

    def _is_function(self, code: CodeType) -> bool:
        """Not a class body, a lambda, a comprehension or a template."""
        named = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        return bool(named) and code.co_filename.startswith(self._prefix) and code.co_filename.endswith(".py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", help="of git, in the place of the working tree")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="the walk too, a function a line")
    parser.add_argument(
        "--record", type=Path, help=argparse.SUPPRESS
    )  # what the process of the training is called with
    options = parser.parse_args()
    if options.record:
        record_walk(options.record)
        return
    steps = walk(options.revision)
    figures = {"revision": options.revision} | measure(steps)
    if options.json:
        listed = {"walk": [f"{file}:{function}" for file, function in steps]} if options.list else {}
        print(json.dumps(figures | listed, indent=2))
        return
    if options.list:
        print("\n".join(f"{file}:{function}" for file, function in steps), end="\n\n")
    print(describe(figures))


def walk(revision: str | None) -> list[tuple[str, str]]:
    """Trains with the source of a revision, or of the working tree, and returns the walk."""
    with open_source(revision) as source, tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "walk.json"
        environment = os.environ | {"PYTHONPATH": str(source)}
        command = [sys.executable, __file__, "--record", str(record)]
        finished = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        if finished.returncode:
            sys.exit(f"the training failed: {finished.stderr}")
        content = json.loads(record.read_text())
        if Path(content["source"]) != source:
            sys.exit(f"the training ran with {content['source']} in the place of {source}")
    return [(file, function) for file, function in content["steps"]]


def record_walk(record: Path) -> None:
    """Trains in this process and writes the walk."""
    import dvfl.cli

    source = Path(dvfl.cli.__file__).parent.parent.parent
    arguments = ["train", "--dataset", "digits", "--quiet", "--out", str(record.parent / "run")]
    hook = Walk(source)
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        status = dvfl.cli.main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    record.write_text(json.dumps({"source": str(source), "steps": hook.steps}))
    sys.exit(status)


def measure(steps: list[tuple[str, str]]) -> dict[str, Any]:
    """The figures of a walk."""
    packages = [find_package(file) for file, _ in steps]
    return {
        "files": len({file for file, _ in steps}),
        "functions": len(steps),
        "package_changes": sum(before != after for before, after in pairwise(packages)),
        "functions_by_package": dict(Counter(packages).most_common()),
    }


def find_package(file: str) -> str:
    """The second part of a module's name, such as `dvfl.parties`."""
    return ".".join(Path(file).parent.parts[:2])


def describe(figures: dict[str, Any]) -> str:
    """The figures as tables."""
    lines = ["| what | figure |", "| --- | --- |"]
    lines += [f"| {name.replace('_', ' ')} | {figures[name]} |" for name in ("files", "functions", "package_changes")]
    lines += ["", "| package | functions |", "| --- | --- |"]
    lines += [f"| {name} | {count} |" for name, count in figures["functions_by_package"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
