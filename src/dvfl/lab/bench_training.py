"""How fast one replica of the paper's MNIST training is, beside plain per-party loops that compute the same losses."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.errors import RunFailed
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.modules import Net
from dvfl.parties.numerics.randomness import batches, numpy_generator
from dvfl.parties.objectives.objective import Objective, Reconstruction
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.plain_loops import PlainCoder, PlainOwner

EPOCHS = {"guests": 20, "hosts": 40, "owner": 60}  # the paper's
ROUNDS = 938  # an epoch of MNIST's 60,000 rows in batches of 64
# Relative difference allowed between our mean loss of an epoch and the plain one. Hosts start from inputs that were
# rounded to float16 and amplify differences in the last bit, so only their first epoch is compared, and less tightly.
# On a GPU both use TF32 products, whose last bit is a thousandth: ten times as much there.
_TOLERANCE = {"guests": 1e-3, "hosts": 1e-2, "owner": 1e-3}


def bench_training(device: str, rounds: int = 300, repeats: int = 5) -> dict[str, Any]:
    """Times epochs of `rounds` rounds, ours and plain in turn, after one epoch that warms up; the medians.

    Seconds are those of the paper's 20, 40 and 60 epochs at MNIST's 938 rounds each.
    """
    epochs = repeats + 1
    settings = Settings(guest_epochs=epochs, host_epochs=epochs, owner_epochs=epochs, validation=0.0)
    simulation = Dvfl(mnist_like(rounds * settings.batch), settings, [0], device=device)
    plain = _PlainLoops(simulation)
    tolerance = {name: limit * (1 if simulation.device.type == "cpu" else 10) for name, limit in _TOLERANCE.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in EPOCHS}
    for epoch in range(epochs):
        ours = _spent(simulation)
        for name, run in (("guests", plain.guest_epoch), ("hosts", plain.host_epoch)):
            seconds, loss = plain.timed(partial(run, epoch))
            times[name].append((seconds, ours[name]))
            if name == "guests" or epoch == 0:
                _check(name, getattr(simulation, name).losses[epoch].mean(), loss, tolerance)
    for epoch in range(epochs):
        ours = _spent(simulation)
        assert simulation.owner is not None
        seconds, loss = plain.timed(partial(plain.owner_epoch, epoch))
        times["owner"].append((seconds, ours["owner"]))
        _check("owner", simulation.owner.losses[epoch].mean(), loss, tolerance)
    with simulation.stack.suited(settings.batch):
        rate = matmul_rate(simulation.device)
    result: dict[str, Any] = {}
    for name, pairs in times.items():
        scale = ROUNDS / rounds * EPOCHS[name]
        old, new = (statistics.median(column) * scale for column in zip(*pairs[1:], strict=True))
        floor = _operations(simulation)[name] * ROUNDS * EPOCHS[name] / rate
        result[name] = _entry(old, new, floor)
    result["overall"] = _entry(*(sum(result[name][key] for name in EPOCHS) for key in _KEYS))
    return {**result, "device": device, "rounds_timed": rounds * repeats, "matmul_operations_per_second": rate}


_KEYS = ("plain_seconds", "ours_seconds", "matmul_floor_seconds")


def mnist_like(rows: int) -> VerticalData:
    """Random strips of MNIST's shape, so that timing needs no file."""
    luck = numpy_generator(0, "bench")
    images = luck.random((rows, 4, 196), np.float32)
    labels = luck.integers(10, size=rows)
    guests = tuple(
        GuestTable(f"guest-{number + 1}", np.ascontiguousarray(images[:, number]), images[:1, number], unit=True)
        for number in range(4)
    )
    return VerticalData("mnist-like", guests, labels, labels[:1], tuple("0123456789"), "mnist")


def matmul_rate(device: torch.device) -> float:
    """Floating-point operations per second of a large matrix product, the best of a few."""
    side = 8192 if device.type == "cuda" else 2048
    a = torch.rand(side, side, device=device)
    best = min(_timed(lambda: a @ a, device)[0] for _ in range(5))
    return 2 * side**3 / best


class _PlainLoops:
    """The same parties as plain modules, with the same first parameters and the same order of rows."""

    def __init__(self, simulation: Dvfl) -> None:
        self.simulation, stack = simulation, simulation.stack
        guest, host, head = stack.groups[0].guest, stack.host, stack.owner.supervision.head
        assert isinstance(guest, Guest) and isinstance(host, Host) and isinstance(head, Mlp)
        assert isinstance(guest.objective, Reconstruction) and isinstance(host.objective, Reconstruction)
        self.guests = [PlainCoder(guest.objective, row, guest.learner.rule) for row in guest.learner.parameters]
        rows = host.learner.parameters[:, host.absence.size :]
        self.hosts = [PlainCoder(host.objective, row, host.learner.rule) for row in rows]
        flat = stack.owner.learner.parameters[0, stack.owner.absence.size :]
        self.owner = PlainOwner(head, flat, stack.owner.learner.rule)
        device = simulation.device
        self.tables = [torch.from_numpy(guest.train).to(device) for guest in simulation.data.guests]
        self.labels = torch.from_numpy(simulation.data.y_train).to(device)
        self.joint: Tensor | None = None
        self.history = torch.empty_like(simulation.hosts.stores[0].batches)

    def timed(self, work: Callable[[], Tensor]) -> tuple[float, Tensor]:
        """Seconds and value, under the same settings of the machine as ours."""
        with self.simulation.stack.suited(self.simulation.settings.batch):
            return _timed(work, self.simulation.device)

    def order(self, purpose: str, epoch: int) -> Tensor:
        rows = batches(self.simulation.data.rows, self.simulation.settings.batch, 0, purpose, epoch)
        return torch.from_numpy(rows).to(self.simulation.device)

    def guest_epoch(self, epoch: int) -> Tensor:
        losses = torch.zeros((), device=self.simulation.device)
        for t, rows in enumerate(self.order("rows", epoch)):
            for number, (guest, table) in enumerate(zip(self.guests, self.tables, strict=True)):
                code, loss = guest.step(table[rows])
                self.history[t, number] = code
                losses += loss
        return losses / (len(self.guests) * (t + 1))

    def host_epoch(self, epoch: int) -> Tensor:
        """On the encodings that our guests pushed, so that the losses can be compared."""
        losses = torch.zeros((), device=self.simulation.device)
        pushed = self.simulation.hosts.stores[0].batches
        rounds = self.simulation.guests.iterations
        for t in range(rounds):
            b = pushed[t].transpose(0, 1).flatten(1).float()
            for host in self.hosts:
                losses += host.step(b)[1]
        return losses / (len(self.hosts) * rounds)

    def owner_epoch(self, epoch: int) -> Tensor:
        if self.joint is None:
            self.joint = self.simulation.stack.encode([guest.train for guest in self.simulation.data.guests])[0]
        losses = torch.zeros((), device=self.simulation.device)
        for rows in self.order("owner", epoch):
            losses += self.owner.step(self.joint[rows], self.labels[rows])
        return losses / self.simulation.guests.iterations


def _spent(simulation: Dvfl) -> dict[str, float]:
    """Seconds by role of one more epoch of ours."""
    before = simulation.watch.totals()
    simulation.advance()
    return {name: total - before.get(name, 0.0) for name, total in simulation.watch.totals().items()}


def _timed(work: Callable[[], Tensor], device: torch.device) -> tuple[float, Tensor]:
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    value = work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, value


def _check(name: str, ours: Tensor, plain: Tensor, tolerance: dict[str, float]) -> None:
    difference = abs(ours.item() - plain.item()) / abs(plain.item())
    if not difference < tolerance[name]:
        raise RunFailed(f"{name}: our loss {ours.item():.6g} and the plain loop's {plain.item():.6g} are not the same")


def _operations(simulation: Dvfl) -> dict[str, int]:
    """Floating-point operations of one round: three products a weight, less the first layer's input gradient."""
    stack, settings = simulation.stack, simulation.settings
    guest, host = stack.groups[0].guest, stack.host
    assert isinstance(guest, Guest) and isinstance(host, Host)
    parties: dict[str, tuple[list[Net], int]] = {
        "guests": (_nets(guest.objective), len(simulation.data.guests)),
        "hosts": (_nets(host.objective), settings.hosts),
        "owner": ([stack.owner.supervision.head], 1),
    }
    counts = {}
    for name, (nets, count) in parties.items():
        layers = [layer for net in nets if isinstance(net, Mlp) for layer in pairwise(net.widths)]
        products = 3 * sum(inputs * outputs for inputs, outputs in layers) - layers[0][0] * layers[0][1]
        counts[name] = 2 * settings.batch * count * products
    return counts


def _nets(objective: Objective) -> list[Net]:
    assert isinstance(objective, Reconstruction)
    return [objective.encoder, objective.decoder]


def _entry(plain: float, ours: float, floor: float) -> dict[str, float]:
    return {**dict(zip(_KEYS, (plain, ours, floor), strict=True)), "ratio": plain / ours}
