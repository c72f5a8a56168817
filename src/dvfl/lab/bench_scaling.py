"""How the cost of a training grows with guests, hosts, rows and replicas."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.files import replacing
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl

_COLUMNS = 16  # of each guest: a federation that grows brings new columns, it does not cut the old ones thinner
_ROWS = 1280
_GUESTS, _HOSTS = 4, 4

# What is varied, and what a point of it is. Everything else stays at the values above.
_VALUES = {
    "guests": (4, 8, 16, 32, 64, 128, 256),
    "hosts": (1, 2, 4, 8, 16, 32),
    "rows": (1280, 2560, 5120, 10240, 20480),
    "replicas": (1, 2, 4, 8, 16, 32),
}


def bench_scaling(device: str, repeats: int = 3) -> dict[str, Any]:
    """Seconds of one epoch of guests, hosts and owner at each value, and the slope of their logarithms."""
    points: dict[str, Callable[[int], float]] = {
        "guests": lambda n: _seconds(device, repeats, guests=n),
        "hosts": lambda n: _seconds(device, repeats, hosts=n),
        "rows": lambda n: _seconds(device, repeats, rows=n),
        "replicas": lambda n: _seconds(device, repeats, replicas=n),
    }
    result: dict[str, Any] = {}
    for name, values in _VALUES.items():
        seconds = [points[name](value) for value in values]
        slope = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
        steepest = float(np.max(np.diff(np.log(seconds)) / np.diff(np.log(values))))
        result[name] = {"values": list(values), "seconds": seconds, "slope": slope, "steepest": steepest}
    return {**result, "device": device}


def plot_scaling(result: dict[str, Any], path: Path) -> None:
    """The four curves on logarithmic axes, beside a line of slope 1, as an SVG."""
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(_VALUES), sharey=True), _VALUES, strict=True):
        values, seconds = result[name]["values"], result[name]["seconds"]
        axes.loglog(values, seconds, "o-", color="#0072B2", markersize=4)
        axes.loglog(values, [seconds[0] * value / values[0] for value in values], ":", color="#777777")
        axes.set_xlabel(name)
        axes.minorticks_off()
        shown = (values[0], values[len(values) // 2], values[-1])
        axes.set_xticks(shown, [f"{value:,}" for value in shown])
        axes.set_title(f"slope {result[name]['slope']:.2f}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        if name == "guests":
            axes.set_ylabel("seconds an epoch")
    with replacing(path) as temporary:
        figure.savefig(temporary, format="svg")


def _seconds(
    device: str, repeats: int, *, guests: int = _GUESTS, hosts: int = _HOSTS, rows: int = _ROWS, replicas: int = 1
) -> float:
    epochs = repeats + 1  # the first warms up
    settings = Settings(
        hosts=hosts, guest_epochs=epochs, host_epochs=epochs, owner_epochs=epochs, validation=0.0, standardise=True
    )
    simulation = Dvfl(_data(guests, rows), settings, range(replicas), device=device)
    spent: dict[str, list[float]] = {}
    while not simulation.finished:
        phase = simulation.phase
        _wait(simulation.device)
        start = time.perf_counter()
        simulation.advance()
        _wait(simulation.device)
        spent.setdefault(phase, []).append(time.perf_counter() - start)
    return sum(min(times[1:]) for times in spent.values())


def _data(guests: int, rows: int) -> VerticalData:
    luck = numpy_generator(0, "scaling")
    tables = [luck.random((rows, _COLUMNS), np.float32) for _ in range(guests)]
    labels = luck.integers(10, size=rows)
    held = tuple(GuestTable(f"guest-{n + 1}", table, table[:1], unit=True) for n, table in enumerate(tables))
    return VerticalData("scaling", held, labels, labels[:1], tuple("0123456789"), "mnist")


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
