"""Work that workers die of, in the middle of a block, by kill -9; in a file of its own, so that they can import it."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dvfl.errors import UserError
from dvfl.reproduce.blocks import BlockFolder, Outcome, Training, Watch
from dvfl.reproduce.sources import Sources
from dvfl.reproduce.workers import Block, Finished, ThisProcess, Watcher, Work, Workers, complete
from dvfl.simulation.simulation import Simulation


class Noting:
    """Writes down the blocks that are begun."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.blocks: list[Block] = []

    def block(self, block: Block, number: int, count: int) -> None:
        self.begun.append(number)
        self.blocks.append(block)

    def epoch(self, simulation: Simulation) -> None: ...


def made_here(wanted: Sequence[Training], sources: Sources, folder: Path) -> dict[str, Outcome]:
    """What this process makes of trainings, cut as for many."""
    here, blocks = ThisProcess("cpu"), BlockFolder(folder)
    here.pieces = 4
    complete(wanted, "paper", sources, blocks, here, Noting())
    return blocks.outcomes


class Wrapped:
    """Workers that do their work in another way."""

    def __init__(self, workers: Workers, way: Callable[..., list[Outcome]]) -> None:
        self._workers, self._way = workers, way

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workers, name)

    def finished(self, todo: Sequence[Block], work: Work, watcher: Watcher) -> Iterator[Finished]:
        return self._workers.finished(todo, partial(self._way, work), watcher)


def killed_once(folder: Path, work: Work, block: Block, *, watch: Watch) -> list[Outcome]:
    """Whoever takes the first block dies after an epoch of it, once; whoever begins one leaves a file."""
    mine = block[0].strategy == "splitnn-zeros" and not block[0].faults and block[0].seed == 0
    first = mine and not list(folder.glob("first-*"))
    (folder / f"{'first' if mine else 'other'}-{time.monotonic_ns()}").touch()

    def die(simulation: Simulation) -> None:
        if first:
            os.kill(os.getpid(), signal.SIGKILL)

    return work(block, watch=die)


def killed_always(training: Training, work: Work, block: Block, *, watch: Watch) -> list[Outcome]:
    """Nobody survives a block with that training."""
    if training in block:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(block, watch=watch)


def held_on(doomed: str, folder: Path, work: Work, block: Block, *, watch: Watch) -> list[Outcome]:
    """On one node of a cluster a block never ends; on others it does once somebody has begun one there."""
    import ray

    if ray.get_runtime_context().get_node_id() == doomed:
        (folder / "begun").touch()
        time.sleep(300)
    begun = time.monotonic()
    while not (folder / "begun").exists() and time.monotonic() - begun < 60:
        time.sleep(0.05)
    return work(block, watch=watch)


def refused(block: Block, *, watch: Watch) -> list[Outcome]:
    raise UserError("outages.csv is not there")


def gpus_seen(block: Block, *, watch: Watch) -> list[Outcome]:
    """The GPU that this process is shown, as a number of requests."""
    return [Outcome(None, None, int(os.environ["CUDA_VISIBLE_DEVICES"])) for _ in block]
