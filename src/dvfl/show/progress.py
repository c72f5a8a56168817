"""Progress on stderr: a bar on a terminal, now and then a plain line in a pipe or in CI, nothing when asked."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dvfl.callbacks import Callback, Values
from dvfl.simulation.simulation import Simulation

# What an epoch costs in proportion, for phases that have not begun; their own pace counts once they have.
_COST = {"guests and hosts": 1.0, "hosts, replay": 0.7, "owner": 0.3, "guests and host": 1.0}

_LINE_EVERY = 60.0  # seconds at most between two lines, so that nobody takes a long run for a dead one
_LINE_APART = 2.0  # seconds at least


def display(simulation: Simulation, quiet: bool) -> Callback:
    """The one that suits where stderr goes."""
    if quiet:
        return Callback()
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


class Lines(Callback):
    """A line at the first epoch, then about every tenth part of the run."""

    def __init__(self, simulation: Simulation) -> None:
        self._pace = Pace()
        self._start = self._last = time.monotonic()
        self._told = simulation.done
        self._first = True

    def on_epoch_end(self, run: Simulation, phase: str, epoch: int, values: Values) -> None:
        self._pace.note(phase)
        now = time.monotonic()
        since, tenth = now - self._last, (epoch - self._told) * 10 >= run.epochs
        if not (self._first or run.finished or since >= _LINE_EVERY or (tenth and since >= _LINE_APART)):
            return
        self._first, self._last, self._told = False, now, epoch
        left = "done" if run.finished else f"about {span(self._pace.left(run))} left"
        print(
            f"{phase}: epoch {epoch} of {run.epochs}, {span(now - self._start)}, {left}",
            file=sys.stderr,
            flush=True,
        )


class Bar(Callback):
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

    def on_run_begin(self, run: Simulation) -> None:
        self._progress.start()

    def on_run_end(self, run: Simulation) -> None:
        self._progress.stop()

    def on_epoch_end(self, run: Simulation, phase: str, epoch: int, values: Values) -> None:
        self._pace.note(phase)
        rate = 1 / max(self._pace.seconds(phase), 1e-9)
        self._progress.update(
            self._task,
            description=phase,
            completed=epoch,
            rate=f"{rate:.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min",
            left=f"{span(self._pace.left(run))} left",
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
