"""Who runs the blocks of an experiment: this process, and what it shares with worker_pool and ray_cluster."""

import os
import platform
import queue
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import torch

from dvfl.data.outages import read_outages
from dvfl.errors import RunFailed, UserError
from dvfl.reproduce.blocks import BlockFolder, Outcome, Training, Watch, blocks, memory_of, plain_settings, run, timed
from dvfl.reproduce.references import REFERENCES
from dvfl.reproduce.sources import Sources
from dvfl.simulation.simulation import Simulation

TRIES = 3  # of a block whose worker dies
# Blocks that trainings of one kind are spread over, however many workers there are: on a GPU the size of a stack can
# change last digits, so where a block is cut must not depend on who is there to take it.
PIECES = 4

Block = tuple[Training, ...]
Finished = tuple[Block, list[Outcome], float]  # and the seconds it took


class Work(Protocol):
    """Trains a block. It travels to other processes, data and all, so it can be pickled."""

    def __call__(self, block: Block, *, watch: Watch) -> list[Outcome]: ...


class Watcher(Protocol):
    """Is told how far an experiment is."""

    def block(self, block: Block, number: int, count: int) -> None:
        """A block begins, the `number`-th of `count`; once more where its worker died."""

    def epoch(self, simulation: Simulation) -> None:
        """An epoch of it is over; told of blocks in this process alone."""


class Workers(Protocol):
    """Blocks in, outcomes out; whoever asks writes them down."""

    @property
    def device(self) -> str:
        """What blocks are trained on: cpu or cuda."""

    @property
    def pieces(self) -> int:
        """How many blocks trainings of one kind are cut into at least, where they are so many."""

    @property
    def memory(self) -> float:
        """Bytes that one block may take."""

    @property
    def machine(self) -> dict[str, Any]:
        """What the figures are made on."""

    def finished(self, todo: Sequence[Block], work: Work, watcher: Watcher) -> Iterator[Finished]:
        """Every block once, as they come; `RunFailed` names one that cannot be finished."""


def complete(
    wanted: Sequence[Training], preset: str, sources: Sources, folder: BlockFolder, workers: Workers, watcher: Watcher
) -> None:
    """Runs the trainings that the folder does not hold yet, and writes every block there when it is finished."""
    # All are cut, finished or not, so that what was stopped goes on with the very blocks that it had left.
    cut = blocks(wanted, preset, sources, workers.device, memory=workers.memory, least=workers.pieces)
    left = []
    for block in cut:
        folder.check(block, plain_settings(block[0], preset, sources.example(block[0].source)))
        left.append(tuple(training for training in block if training.key not in folder.outcomes))
    work = partial(run, preset_name=preset, sources=sources, device=workers.device, read=read_outages)
    for block, outcomes, seconds in workers.finished([block for block in left if block], work, watcher):
        settings = plain_settings(block[0], preset, sources.example(block[0].source))
        folder.write(block, settings, outcomes, seconds)


class ThisProcess:
    """One block after another, here."""

    pieces = 1

    def __init__(self, device: str) -> None:
        self.device = device

    @property
    def memory(self) -> float:
        return memory_of(self.device)

    @property
    def machine(self) -> dict[str, Any]:
        return machine(self.device)

    def finished(self, todo: Sequence[Block], work: Work, watcher: Watcher) -> Iterator[Finished]:
        from dvfl.reproduce.worker_pool import WorkerPool

        alone = [block for block in todo if block[0].strategy in REFERENCES]
        beside: Beside | None = None
        if len(alone) > 1:  # each takes one core, and the others are free
            count = min(len(alone), os.cpu_count() or 1)
            told = watcher if self.device == "cpu" else _Unseen()  # a watcher follows one block at a time
            made = WorkerPool(count, "cpu").finished(alone, work, told)
            shared = ((block, outcomes, seconds / count) for block, outcomes, seconds in made)
            if self.device == "cpu":
                yield from shared
            else:  # a GPU leaves the cores to them meanwhile
                beside = Beside(shared)
        rest = todo if len(alone) < 2 else [block for block in todo if block[0].strategy not in REFERENCES]
        for number, block in enumerate(rest):
            watcher.block(block, number + 1, len(rest))
            yield block, *_train(work, block, watcher.epoch)
            if beside is not None:
                yield from beside.ready()
        if beside is not None:
            yield from beside.all()


class _Unseen:
    """Watches nothing."""

    def block(self, block: Block, number: int, count: int) -> None: ...
    def epoch(self, simulation: Simulation) -> None: ...


class Beside:
    """Blocks that are finished in a thread of their own, to be fetched now and then."""

    def __init__(self, finished: Iterator[Finished]) -> None:
        self._done: queue.SimpleQueue[Finished | Exception | None] = queue.SimpleQueue()  # None: that was all
        threading.Thread(target=self._collect, args=(finished,), daemon=True).start()

    def ready(self) -> Iterator[Finished]:
        """What is there by now; it took no time of its own, since the GPU was busy meanwhile."""
        while not self._done.empty():
            one = self._done.get()
            if one is None or isinstance(one, Exception):
                self._done.put(one)
                return
            yield *one[:2], 0.0

    def all(self) -> Iterator[Finished]:
        """The rest, as it comes, with the seconds that were waited for it; raises what went wrong."""
        start = time.perf_counter()
        while (one := self._done.get()) is not None:
            if isinstance(one, Exception):
                raise one
            now = time.perf_counter()
            yield *one[:2], now - start
            start = now

    def _collect(self, finished: Iterator[Finished]) -> None:
        try:
            for one in finished:
                self._done.put(one)
            self._done.put(None)
        except Exception as error:
            self._done.put(error)


def machine(device: str) -> dict[str, Any]:
    """This machine, as far as figures depend on it."""
    if device == "cuda":
        return {"gpu": torch.cuda.get_device_name(), "gpu_memory_gib": round(torch.cuda.mem_get_info()[1] / 2**30)}
    return {"cpu": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}


Answer = tuple[list[Outcome], float] | Exception


def attempt(work: Work, block: Block) -> Answer:
    """A worker's answer: what came of a block, or what went wrong in a form that travels between processes."""
    try:
        return _train(work, block, lambda simulation: None)
    except Exception as error:
        known = isinstance(error, UserError | RunFailed)
        told = error if known else RunFailed(f"{named(block)}: {type(error).__name__}: {error}")
        told.add_note(traceback.format_exc())  # a traceback itself does not travel; --debug shows this one
        return told


def outcome(answer: Answer) -> tuple[list[Outcome], float]:
    """What a worker answered; raises what went wrong there."""
    if isinstance(answer, Exception):
        raise answer
    return answer


def given_up(lost: Sequence[Block]) -> RunFailed:
    """What to raise, once the other blocks are done, for those whose workers died time after time."""
    more = "" if len(lost) == 1 else f" and of {len(lost) - 1} more"
    return RunFailed(
        f"{named(lost[0])}: the worker of this block{more} died {TRIES} times (killed, or out of memory);"
        " the other blocks are finished and kept, and the same command tries again"
    )


def named(block: Block) -> str:
    """A block in a few words."""
    first = block[0]
    others = "" if len(block) == 1 else f" and {len(block) - 1} more"
    return f"block {first.strategy}, {' '.join(first.faults) or 'no faults'}, seed {first.seed}{others}"


def _train(work: Work, block: Block, watch: Watch) -> tuple[list[Outcome], float]:
    return timed(lambda: work(block, watch=watch))
