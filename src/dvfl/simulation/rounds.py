"""Runs a round many times: a plain loop on the CPU, a replayed CUDA graph on a GPU.

What changes from round to round lies in a `Feed`, filled once an epoch, so that nothing inside an epoch waits for
the other side.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.simulation.cpu_threads import threads

_WARM_UP = 3  # rounds on a GPU before one is recorded
_UNROLLED = 16  # rounds in the larger graph: fewer launches, and none of them has to wait for the one before

Round = int | Tensor  # a number on the CPU, a tensor of one element on a GPU


class Feed:
    """Named arrays with one entry a round. Their memory stays in place, as a captured graph needs."""

    def __init__(self, device: torch.device, rounds: int) -> None:
        self.device = device
        self._rounds = rounds  # the most that will ever be loaded
        self._buffers: dict[str, Tensor] = {}

    def load(self, name: str, values: NDArray[np.generic]) -> None:
        """Sets the entries of the rounds to come."""
        source = torch.from_numpy(np.require(values, requirements=["C", "W"]))
        if self.device.type == "cpu":
            self._buffers[name] = source
            return
        if name not in self._buffers:
            self._buffers[name] = torch.empty((self._rounds, *source.shape[1:]), dtype=source.dtype, device=self.device)
        self._buffers[name][: len(source)].copy_(source.pin_memory(), non_blocking=True)

    def at(self, name: str, t: Round) -> Tensor:
        """The entry of round `t`."""
        buffer = self._buffers[name]
        return buffer[t] if isinstance(t, int) else buffer.index_select(0, t).squeeze(0)


class Rounds:
    """One kind of round, to be run many times.

    A round has parts that know nothing of each other: stacks of guests, or slices of a stack. On the CPU each part runs
    all its rounds on a thread of its own, so that no operation waits for another thread.
    """

    def __init__(self, parts: Sequence[Callable[[Round], None]], device: torch.device, workers: int) -> None:
        self._parts = parts
        self._device = device
        self._workers = workers  # threads of the CPU that are worth having
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}  # by the number of rounds in one
        self._t = torch.zeros(1, dtype=torch.int64, device=device)

    def run(self, count: int) -> None:
        """Runs rounds 0 .. count - 1 of the feed."""
        if self._device.type == "cpu":
            if self._workers > 1 and len(self._parts) > 1:
                self._run_on_threads(count)
            else:
                with threads(self._workers):
                    _run(self._parts, count)
            return
        self._t.zero_()
        if not self._graphs:
            count -= self._warm_up(min(_WARM_UP, count))
        for length in (_UNROLLED, 1):
            graph = self._captured(length) if count >= length else None
            while graph is not None and count >= length:
                graph.replay()
                count -= length

    def _run_on_threads(self, count: int) -> None:
        def work(part: Callable[[Round], None]) -> None:
            torch.set_num_threads(1)  # inside operations; holds for the thread that says it
            with torch.no_grad():
                _run([part], count)

        with threads(1), ThreadPoolExecutor(self._workers) as pool:
            for _ in pool.map(work, self._parts):
                pass

    def _warm_up(self, count: int) -> int:
        """Runs the first rounds as they are, which prepares the libraries' workspaces; how many."""
        side = torch.cuda.Stream(self._device)
        side.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(side):
            for _ in range(count):
                self._advance()
        torch.cuda.current_stream(self._device).wait_stream(side)
        return count

    def _captured(self, length: int) -> torch.cuda.CUDAGraph:
        """The graph of so many rounds, recorded at its first use."""
        if length not in self._graphs:
            self._graphs[length] = torch.cuda.CUDAGraph()
            with _no_collection(), torch.cuda.graph(self._graphs[length]):
                for _ in range(length):
                    self._advance()
        return self._graphs[length]

    def _advance(self) -> None:
        for part in self._parts:
            part(self._t)
        self._t.add_(1)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage goes first, and none is collected meanwhile: to free an older graph would spoil the one recorded."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _run(parts: Sequence[Callable[[Round], None]], count: int) -> None:
    for part in parts:
        for t in range(count):
            part(t)


def cut(elements: int, pieces: int) -> list[slice]:
    """A stack's elements in so many pieces of about equal size, or fewer."""
    ends = [elements * number // pieces for number in range(pieces + 1)]
    return [slice(start, end) for start, end in pairwise(ends) if end > start]


class Stopwatch:
    """Adds up the time of named parts of a run; on a GPU by events, without waiting for it."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._marks: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {}
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], None]) -> None:
        """Runs `work` and counts its time under `name`."""
        if self._cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            work()
            end.record()
            self._marks.setdefault(name, []).append((start, end))
        else:
            start_s = time.perf_counter()
            work()
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start_s

    def totals(self) -> dict[str, float]:
        """Seconds by name; waits for the GPU."""
        if self._cuda:
            torch.cuda.synchronize()
            for name, marks in self._marks.items():
                spent = sum(start.elapsed_time(end) for start, end in marks) / 1000
                self.seconds[name] = self.seconds.get(name, 0.0) + spent
            self._marks.clear()
        return dict(self.seconds)


def one_or_each(values: Sequence[float]) -> float | Sequence[float]:
    """One value where all replicas have the same, so that nothing is spent on telling them apart."""
    return values[0] if len(set(values)) == 1 else values
