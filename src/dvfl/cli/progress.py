"""Progress on stderr: a bar on a terminal, now and then a plain line in a pipe or in CI, nothing when asked."""

import sys
import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dvfl.strategies.simulation import Simulation

# What an epoch costs in proportion, for phases that have not begun; their own pace counts once they have.
_COST = {"guests and hosts": 1.0, "hosts, replay": 0.7, "owner": 0.3, "guests and host": 1.0}

_LINE_EVERY = 60.0  # seconds at most between two lines, so that nobody takes a long run for a dead one
_LINE_APART = 2.0  # seconds at least


class Display(Protocol):
    """Shows how far a simulation is."""

    def __enter__(self) -> "Display": ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def epoch(self, simulation: Simulation, phase: str) -> None:
        """An epoch of that phase is over."""


def display(simulation: Simulation, quiet: bool) -> Display:
    """The one that suits where stderr goes."""
    if quiet:
        return Silence()
    return Bar(simulation) if sys.stderr.isatty() else Lines(simulation)


class Pace:
    """Seconds an epoch takes, phase by phase, and so how long the rest will take."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._epochs: dict[str, list[float]] = {}

    def note(self, phase: str) -> None:
        now = time.monotonic()
        self._epochs.setdefault(phase, []).append(now - self._last)
        self._last = now

    def seconds(self, phase: str) -> float:
        """Of one epoch; the first of a phase counts only while it is alone, since it also prepares."""
        if phase in self._epochs:
            taken = self._epochs[phase]
            return sum(taken[1:]) / len(taken[1:]) if len(taken) > 1 else taken[0]
        known = next(reversed(self._epochs))
        return self.seconds(known) * _COST[phase] / _COST[known]

    def left(self, simulation: Simulation) -> float:
        """Seconds until the end, unless the owner stops early."""
        return sum(count * self.seconds(phase) for phase, count in simulation.epochs_left.items() if count)


class Silence:
    """Shows nothing."""

    def __enter__(self) -> "Silence":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def epoch(self, simulation: Simulation, phase: str) -> None: ...


class Lines(Silence):
    """A line at the first epoch, then about every tenth part of the run."""

    def __init__(self, simulation: Simulation) -> None:
        self._pace = Pace()
        self._start = self._last = time.monotonic()
        self._told = simulation.done
        self._first = True

    def epoch(self, simulation: Simulation, phase: str) -> None:
        self._pace.note(phase)
        now = time.monotonic()
        since, tenth = now - self._last, (simulation.done - self._told) * 10 >= simulation.epochs
        if not (self._first or simulation.finished or since >= _LINE_EVERY or (tenth and since >= _LINE_APART)):
            return
        self._first, self._last, self._told = False, now, simulation.done
        left = "done" if simulation.finished else f"about {span(self._pace.left(simulation))} left"
        print(
            f"{phase}: epoch {simulation.done} of {simulation.epochs}, {span(now - self._start)}, {left}",
            file=sys.stderr,
            flush=True,
        )


class Bar:
    """A bar with the phase, epochs, their rate and the time left."""

    def __init__(self, simulation: Simulation) -> None:
        self._pace = Pace()
        self._progress = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs  {task.fields[rate]}  {task.fields[left]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(
            simulation.phase, total=simulation.epochs, completed=simulation.done, rate="", left=""
        )

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def epoch(self, simulation: Simulation, phase: str) -> None:
        self._pace.note(phase)
        rate = 1 / max(self._pace.seconds(phase), 1e-9)
        self._progress.update(
            self._task,
            description=phase,
            completed=simulation.done,
            rate=f"{rate:.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min",
            left=f"{span(self._pace.left(simulation))} left",
        )


def span(seconds: float) -> str:
    """Seconds as people read them."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
