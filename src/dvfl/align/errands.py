"""What the owner has to ask of whom: what is ready, and what is under way."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from dvfl.align.tasks import Task


class Errand(NamedTuple):
    """Something to ask of a party: of what kind, about whose rows, and which part of them."""

    kind: str
    about: str
    part: int = 0


class Errands:
    """Those that are ready are drawn at random, so that their order says nothing."""

    def __init__(self, draw: np.random.Generator) -> None:
        self._draw = draw
        self._ready: dict[str, list[Errand]] = defaultdict(list)
        self._under_way: dict[tuple[str, str, int], Errand] = {}

    def add(self, party: str, errand: Errand) -> None:
        self._ready[party].append(errand)

    def next(self, party: str) -> Errand | None:
        ready = self._ready[party]
        if not ready:
            return None
        at = int(self._draw.integers(len(ready)))
        ready[at], ready[-1] = ready[-1], ready[at]
        return ready.pop()

    def opaque(self) -> int:
        """A number that says nothing."""
        return int(self._draw.integers(2**62))

    def gave(self, party: str, task: Task, errand: Errand) -> Task:
        self._under_way[party, task.kind, task.number] = errand
        return task

    def asked(self, party: str, task: Task) -> Errand | None:
        """What this task was given out for; None where nobody waits for its answer."""
        return self._under_way.get((party, task.kind, task.number))

    def came(self, party: str, task: Task) -> None:
        del self._under_way[party, task.kind, task.number]

    def again(self, party: str, task: Task) -> None:
        """Back to those that are ready: the answer was of no use."""
        self.add(party, self._under_way.pop((party, task.kind, task.number)))
