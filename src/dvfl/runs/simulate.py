"""`dvfl.simulate`: one call from data to a trained simulation and its figures, as `dvfl train` without a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dvfl.callbacks import Callback, advance, followed
from dvfl.data import VerticalData, load
from dvfl.data.outages import read_outages
from dvfl.errors import UserError, nearest
from dvfl.parties.faults.fault_set import Faults
from dvfl.runs.run_folder import config, history, measure
from dvfl.simulation.simulation import Simulation
from dvfl.strategies import STRATEGIES
from dvfl.strategies.presets import settled


@dataclass(frozen=True)
class Figures:
    """What a run left behind: figures by seed, losses by epoch.

    Attributes:
        result: as in `result.json`.
        history: as in `history.json`: losses by epoch, party and seed.
    """

    result: Mapping[str, Any]
    history: Mapping[str, Any]

    @property
    def accuracy(self) -> list[float | None] | None:
        """Test accuracy in percent, by seed; None for a seed that stalled, and for a regression as a whole."""
        accuracy: list[float | None] | None = self.result["accuracy"]
        return accuracy

    @property
    def metrics(self) -> dict[str, list[float | None]]:
        """Every figure that there is, by name and seed: `accuracy`, or `r2` of a regression."""
        names = ("accuracy", "r2")
        return {name: list(self.result[name]) for name in names if self.result.get(name) is not None}


@dataclass(frozen=True)
class Simulated(Figures):
    """What came of `simulate`: the figures, and the trained parties themselves.

    Attributes:
        simulation: the trained parties, as a stack over seeds.
    """

    simulation: Simulation

    def predict(self) -> NDArray[Any]:
        """Predictions for the data's test rows, one row a seed: names of classes, or numbers of a regression."""
        outputs = self.simulation.outputs().cpu()
        classes = self.simulation.data.classes
        if classes is None:
            return np.asarray(outputs[..., 0].numpy())
        return np.asarray(np.array(classes)[outputs.argmax(-1).numpy()])


def simulate(
    data: str | VerticalData,
    strategy: str = "dvfl",
    preset: str = "tuned",
    faults: Sequence[str] = (),
    seeds: int = 1,
    device: str = "auto",
    *,
    data_dir: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Simulated:
    """Trains a simulated federation and measures it on the data's test rows.

    Args:
        data: a data set's name (`"digits"`, `"mnist"` ..), or a `VerticalData`.
        strategy: one of `dvfl train --strategy`.
        preset: `"tuned"`, or `"paper"` for the paper's hyperparameters.
        faults: as on the command line, such as `["guest:0.3:0.1"]`.
        seeds: how many trainings, with the seeds 0 to `seeds` - 1; all run at once.
        device: `"auto"`, `"cpu"` or `"cuda"`.
        data_dir: where to look for a data set's files first.
        callbacks: told of every epoch.
        **settings: fields of the strategy's settings, such as `hosts=2` or `guest_epochs=5`; they win over the preset.

    Returns:
        The figures, the losses and the trained parties.

    Example:
        >>> from dvfl import simulate
        >>> run = simulate("digits", hosts=2, faults=["guest:0.3:0.5"], guest_epochs=2, host_epochs=2, owner_epochs=5)
        >>> len(run.accuracy)
        1
    """
    if seeds < 1:
        raise UserError(f"seeds {seeds}: at least 1 is needed")
    found = STRATEGIES.find(strategy)
    known = found.settings.names()
    for name in settings:
        if name not in known:
            raise UserError(f"strategy {strategy} has no setting '{name}'{nearest(name, known)}")
        if name in found.fixed:
            raise UserError(f"{name} is {found.fixed[name]} in {strategy}; strategy dvfl takes others")
    if isinstance(data, str):
        data = load(data, data_dir=None if data_dir is None else Path(data_dir))
    if not isinstance(data, VerticalData):
        raise UserError(f"data is a {type(data).__name__}; give a data set's name or a VerticalData")
    simulation = found(
        data,
        settled(preset, data, settings, strategy=strategy),
        range(seeds),
        faults=Faults.parse(faults, read_outages),
        device=_device(device),
    )
    with followed(simulation, callbacks):
        while not simulation.finished:
            advance(simulation, callbacks)
    plain = measure(simulation, config(simulation, strategy, preset, {"name": data.name}))
    return Simulated(plain, history(simulation), simulation)


def _device(name: str) -> str:
    """`auto` is a GPU where PyTorch finds one."""
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"device '{name}': it must be auto, cpu or cuda")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise UserError("device 'cuda': PyTorch finds no CUDA GPU on this machine; cpu or auto will do")
    return "cuda" if name != "cpu" and there else "cpu"
