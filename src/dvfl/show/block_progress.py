"""Progress of an experiment on stderr: a line when a block begins, and now and then how far it is."""

import sys
import time

from dvfl.reproduce.blocks import Training
from dvfl.show.progress import span
from dvfl.simulation.simulation import Simulation

_LINE_EVERY = 15.0  # seconds


class BlockLines:
    """Plain lines, on a terminal and in a pipe alike: an experiment takes minutes."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._name = ""
        self._begun = self._last = time.monotonic()

    def block(self, block: tuple[Training, ...], number: int, count: int) -> None:
        """A block begins."""
        trainings = "1 training" if len(block) == 1 else f"{len(block)} trainings at once"
        self._name = f"block {number} of {count}, {block[0].strategy}"
        self._begun = self._last = time.monotonic()
        self._print(f"{self._name}: {trainings}")

    def epoch(self, simulation: Simulation) -> None:
        """An epoch is over."""
        now = time.monotonic()
        if now - self._last >= _LINE_EVERY or simulation.finished:
            self._last = now
            self._print(f"{self._name}: epoch {simulation.done} of {simulation.epochs}, {span(now - self._begun)}")

    def _print(self, line: str) -> None:
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)
