"""Blocks on several processes of this machine: on CPU with their share of threads and memory, or each with a GPU."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

import torch

from dvfl.errors import UserError
from dvfl.reproduce.blocks import memory_of
from dvfl.reproduce.workers import PIECES, TRIES, Block, Finished, Watcher, Work, attempt, given_up, machine, outcome

_LEAVE = 5.0  # seconds that a worker has to end when it is asked to
_GPUS = "CUDA_VISIBLE_DEVICES"
_spawn = multiprocessing.get_context("spawn")  # a fork of a process that has threads or a GPU does not work


class WorkerPool:
    """So many processes. One that dies is replaced, and its block is run again."""

    pieces = PIECES

    def __init__(self, count: int, device: str) -> None:
        if device == "cuda" and count > torch.cuda.device_count():
            raise UserError(f"--workers {count}: one a GPU is right; PyTorch finds {torch.cuda.device_count()} here")
        self._count = count
        self.device = device

    @property
    def memory(self) -> float:
        return memory_of(self.device) / (1 if self.device == "cuda" else self._count)

    @property
    def machine(self) -> dict[str, Any]:
        threads = {"threads": self._threads} if self.device == "cpu" else {}
        return {**machine(self.device), **threads, "workers": self._count}

    def finished(self, todo: Sequence[Block], work: Work, watcher: Watcher) -> Iterator[Finished]:
        waiting, tries, lost = deque(range(len(todo))), [0] * len(todo), []
        # All are started before the first is told anything, so that they import PyTorch side by side.
        crew = [self._worker(place) for place in range(min(self._count, len(todo)))]
        idle, busy = deque(range(len(crew))), dict[Connection, tuple[int, int]]()  # places; a place and its block
        try:
            while waiting or busy:
                while idle and waiting:
                    place, number = idle.popleft(), waiting.popleft()
                    tries[number] += 1
                    busy[crew[place].line] = place, number
                    watcher.block(todo[number], number + 1, len(todo))
                    crew[place].give(work, todo[number])
                ready = connection.wait(busy)
                for place, number in [busy.pop(line) for line in list(busy) if line in ready]:
                    try:
                        answer = crew[place].line.recv()
                    except (EOFError, OSError):  # it died
                        crew[place].end()
                        if tries[number] < TRIES:
                            waiting.appendleft(number)
                        else:
                            lost.append(todo[number])
                        if waiting:
                            crew[place] = self._worker(place)
                            idle.append(place)
                    else:
                        idle.append(place)
                        yield todo[number], *outcome(answer)
        finally:
            for worker in crew:
                worker.end()
        if lost:
            raise given_up(lost)

    @property
    def _threads(self) -> int:
        return max(1, torch.get_num_threads() // self._count)

    def _worker(self, place: int) -> "_Worker":
        return _Worker(self._threads, _gpu(place) if self.device == "cuda" else None)


class _Worker:
    """A process, and the line to it."""

    def __init__(self, threads: int, gpu: str | None) -> None:
        self.line, other = _spawn.Pipe()
        self._process = _spawn.Process(target=_serve, args=(other, threads), daemon=True)
        self._has_work = False
        with _surroundings(gpu):
            self._process.start()
        other.close()  # or the end of the process would not end the line

    def give(self, work: Work, block: Block) -> None:
        with suppress(OSError):  # it is dead, and whoever reads its answer sees that
            if not self._has_work:
                self.line.send(work)
                self._has_work = True
            self.line.send(block)

    def end(self) -> None:
        self.line.close()
        self._process.terminate()
        self._process.join(_LEAVE)
        self._process.kill()
        self._process.join()


def _serve(line: Connection, threads: int) -> None:
    """What a worker does until nobody asks for more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where a thread started it, which could not have it inherit that
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    with suppress(EOFError, OSError):
        work = line.recv()
        while True:
            line.send(attempt(work, line.recv()))


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _surroundings(gpu: str | None) -> Iterator[None]:
    """What a process that is started now inherits: its GPU, and no ear for Ctrl-C, which is the driver's to hear."""
    before = os.environ.get(_GPUS)
    main = threading.current_thread() is threading.main_thread()  # Python allows no other to set handlers
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    if gpu is not None:
        os.environ[_GPUS] = gpu
    try:
        yield
    finally:
        if gpu is not None:
            os.environ.pop(_GPUS)
            os.environ |= {} if before is None else {_GPUS: before}
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _gpu(place: int) -> str:
    visible = os.environ.get(_GPUS)
    return str(place) if visible is None else visible.split(",")[place].strip()
