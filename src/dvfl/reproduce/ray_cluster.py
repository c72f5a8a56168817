"""Blocks on the machines of a Ray cluster. The one module that imports Ray, and only when it is used."""

import logging
import os
import re
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

from dvfl.errors import RunFailed, UserError
from dvfl.reproduce.blocks import memory_of
from dvfl.reproduce.workers import (
    PIECES,
    TRIES,
    Answer,
    Block,
    Finished,
    Watcher,
    Work,
    attempt,
    given_up,
    machine,
    named,
    outcome,
)

_REACHED_IN = 15.0  # seconds; Ray itself would go on trying for minutes
_LOOKED_IN = 60.0  # seconds for the first task, which imports PyTorch on a worker
_CPU_SHARE = 0.6  # of what Ray counts as a node's memory, which is about 0.7 of it
_TRY = "import sys, logging, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.CRITICAL)"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to anybody outside the cluster
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or Ray prints a tip about it
}


@dataclass(frozen=True)
class RayWorkers:
    """A cluster that this process is connected to: a task a block, with a GPU or a CPU of its own."""

    device: str
    memory: float  # bytes
    machine: dict[str, Any]
    pieces: int = PIECES

    def finished(self, todo: Sequence[Block], work: Work, watcher: Watcher) -> Iterator[Finished]:
        import ray
        from ray.exceptions import RayError

        # The data are part of the work. They travel once to a node, however many blocks it takes.
        shipped = ray.put(work)
        task = _task(attempt, self.device, max_retries=TRIES - 1)  # where a worker or its node dies
        waiting, lost = deque(range(len(todo))), []
        running: dict[Future[Answer], int] = {}
        while waiting or running:
            while waiting and len(running) < max(1, _slots(self.device)):  # nodes may come and go
                number = waiting.popleft()
                watcher.block(todo[number], number + 1, len(todo))
                running[task.remote(shipped, todo[number]).future()] = number
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                block = todo[running.pop(future)]
                try:
                    answer = future.result()
                except RayError as error:
                    if not _died(error):
                        raise RunFailed(f"{named(block)}: {_last_line(error)}") from error
                    lost.append(block)
                else:
                    yield block, *outcome(answer)
        if lost:
            raise given_up(lost)


@contextmanager
def ray_workers(address: str, device: str) -> Iterator[RayWorkers]:
    """Connects to a cluster, or starts one on this machine for `local`; `auto` takes GPUs where it has some."""
    _reach(address)
    os.environ |= _QUIET
    import ray

    local = {"include_dashboard": False} if address == "local" else {}
    # Ray prints pages about every node that dies to stdout, which is for results.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL, **local)
            chosen = ("cuda" if _slots("cuda") else "cpu") if device == "auto" else device
            if not _slots(chosen):
                what, right = ("GPU", "--device cpu") if chosen == "cuda" else ("CPU for tasks", "a node with some")
                raise UserError(f"--ray {address}: no node of the cluster has a {what}; {right} is right")
            yield RayWorkers(chosen, *_looked(address, chosen))
        finally:
            ray.shutdown()


def _reach(address: str) -> None:
    """Refuses an address where no cluster answers soon."""
    if address == "local":
        return
    if address != "auto":
        host, port = _host_and_port(address)
        try:
            socket.create_connection((host, port), timeout=_REACHED_IN).close()
        except OSError as error:
            raise UserError(f"--ray {address}: nothing answers there ({error}); `ray status` says where") from error
    # Whatever answers may be no cluster, and to wait for Ray to give up cannot be cut short in this process.
    try:
        tried = subprocess.run(
            [sys.executable, "-c", _TRY, address],
            env={**os.environ, **_QUIET},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_REACHED_IN,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"--ray {address}: no Ray cluster lets this process in within {_REACHED_IN:g} s; one that is up is right,"
            " and where it asks for a token, RAY_AUTH_MODE and RAY_AUTH_TOKEN as on its nodes"
        ) from error
    if tried.returncode:
        raise UserError(f"--ray {address}: {_last_line(tried.stdout)}; `ray start --head` starts a cluster")


def _host_and_port(address: str) -> tuple[str, int]:
    match = re.fullmatch(r"\[?([^/\]]+)\]?:([0-9]{1,5})", address)
    if match is None or not 0 < int(match[2]) < 65536:
        raise UserError(f"--ray {address}: auto, local or HOST:PORT is right")
    return match[1], int(match[2])


def _looked(address: str, device: str) -> tuple[float, dict[str, Any]]:
    """The memory that a block may take, and what the figures are made on, as the first worker that answers has it."""
    import ray
    from ray.exceptions import RayError

    try:
        memory, what = ray.get(_task(_look, device).remote(device), timeout=_LOOKED_IN)
    except RayError as error:
        raise UserError(f"--ray {address}: a worker cannot start ({_last_line(error)}); dvfl must be there") from error
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if device == "cpu":
        memory = min(node["memory"] / node["CPU"] for node in nodes if node.get("CPU")) * _CPU_SHARE
    return memory, {**what, "ray_nodes": len(nodes), "workers": _slots(device)}


def _look(device: str) -> tuple[float, dict[str, Any]]:
    return memory_of(device), machine(device)


def _task(function: Any, device: str, **options: Any) -> Any:
    import ray

    # Ray gives a task as many threads as CPUs, and shows it its own GPU alone.
    needs = {"num_gpus": 1} if device == "cuda" else {"num_cpus": 1}
    return ray.remote(**needs, **options)(function)


def _slots(device: str) -> int:
    """Blocks that can run at once."""
    import ray

    return int(ray.cluster_resources().get("GPU" if device == "cuda" else "CPU", 0))


def _died(error: Exception) -> bool:
    from ray import exceptions

    names = ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError", "LocalRayletDiedError")
    return isinstance(error, tuple(getattr(exceptions, name) for name in names))


def _last_line(text: object) -> str:
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[-1] if lines else type(text).__name__
