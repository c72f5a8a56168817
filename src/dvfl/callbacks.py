"""A run as others may follow it: what a callback is told, who tells it, and TensorBoard."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor

from dvfl.errors import UserError
from dvfl.simulation.simulation import History, Simulation

Values = Mapping[str, Sequence[float]]


class Callback:
    """Override what is of interest. An error of a callback is its own, and ends the run."""

    def on_run_begin(self, run: Simulation) -> None:
        """The run is about to begin, or to go on: `run.done` epochs of it are over."""

    def on_epoch_end(self, run: Simulation, phase: str, epoch: int, values: Values) -> None:
        """The epoch of that number, counted through all phases, is over.

        `values` has one number a seed: `loss/PARTY` of everybody who learned in it, and `score/held_out`.
        """

    def on_run_end(self, run: Simulation) -> None:
        """The run is over; `run.finished` says whether it came to its end."""


@contextmanager
def followed(run: Simulation, callbacks: Sequence[Callback]) -> Iterator[None]:
    """Tells of the beginning, and of the end however it comes."""
    with ExitStack() as stack:
        for callback in callbacks:
            callback.on_run_begin(run)
            stack.callback(callback.on_run_end, run)
        yield


def advance(run: Simulation, callbacks: Sequence[Callback]) -> None:
    """Runs one epoch and tells of it."""
    phase, before = run.phase, _lengths(run.history())
    run.advance()
    values = EpochValues(run, before)
    for callback in callbacks:
        callback.on_epoch_end(run, phase, run.done, values)


class EpochValues(Mapping[str, Sequence[float]]):
    """What one epoch brought. It is read when it is looked at: a GPU need not wait where nobody does."""

    def __init__(self, run: Simulation, before: tuple[int, ...]) -> None:
        past = run.history()
        guests = [guest.name for guest in run.data.guests]
        hosts = [f"host-{number + 1}" for number in range(run.host_count)]
        self._tensors: dict[str, Tensor] = {}  # (replicas,) each
        if len(past.guests) > before[0]:
            self._tensors |= {f"loss/{name}": past.guests[-1][:, number] for number, name in enumerate(guests)}
        if len(past.hosts) > before[1]:
            self._tensors |= {f"loss/{name}": past.hosts[-1][:, number] for number, name in enumerate(hosts)}
        if len(past.labels) > before[2]:
            self._tensors["loss/owner"] = past.labels[-1]
        if len(past.held_out) > before[3]:
            self._tensors["score/held_out"] = past.held_out[-1]

    def __getitem__(self, name: str) -> Sequence[float]:
        return tuple(self._tensors[name].tolist())

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


class TensorBoard(Callback):
    """Every value as a curve, each seed a run of its own: `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: str | Path) -> None:
        if find_spec("tensorboard") is None:
            raise UserError("tensorboard not installed; pip install 'dvfl[tensorboard]' is right")
        self.folder = folder
        self._writers: list[Any] = []

    def on_run_begin(self, run: Simulation) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # What an interrupted run wrote after its checkpoint comes again.
        again = {"purge_step": run.done + 1} if run.done else {}
        self._writers = [SummaryWriter(str(Path(self.folder, f"seed-{seed}")), **again) for seed in run.seeds]

    def on_epoch_end(self, run: Simulation, phase: str, epoch: int, values: Values) -> None:
        for name, of_seeds in values.items():
            for writer, value in zip(self._writers, of_seeds, strict=True):
                writer.add_scalar(name, value, epoch)
        for writer in self._writers:
            writer.flush()  # so that a run can be watched, and what it wrote outlives it

    def on_run_end(self, run: Simulation) -> None:
        for writer in self._writers:
            writer.close()
        self._writers = []


def _lengths(past: History) -> tuple[int, ...]:
    return len(past.guests), len(past.hosts), len(past.labels), len(past.held_out)
