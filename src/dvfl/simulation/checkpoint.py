"""A simulation on disk between two epochs: one safetensors file, from which it goes on to the same end."""

import json
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file

from dvfl.files import replacing, writing
from dvfl.simulation.simulation import Simulation


def save(simulation: Simulation, path: Path) -> None:
    """Writes everything that is needed to go on from here."""
    tensors, position = simulation.state()
    position["seconds"] = simulation.watch.totals()
    with writing(path), replacing(path) as temporary:
        whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(whole, temporary, {"position": json.dumps(position)})


def restore(simulation: Simulation, path: Path) -> None:
    """Brings a freshly made simulation of the same data, settings, seeds and faults to where the file was written."""
    with safe_open(path, "pt") as file:
        position = json.loads(file.metadata()["position"])
    simulation.watch.seconds = dict(position["seconds"])
    simulation.restore(load_file(path), position)
