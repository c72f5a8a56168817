"""A simulation on disk between two epochs: one safetensors file, from which it goes on to the same end."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from dvfl.files import replacing
from dvfl.parties.faults import Chains
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.parties.learner import Learner
from dvfl.strategies.dvfl import Dvfl


def save(simulation: Dvfl, path: Path) -> None:
    """Writes everything that is needed to go on from here."""
    guests, hosts, owner = simulation.guests, simulation.hosts, simulation.owner
    tensors: dict[str, Tensor] = {}
    for name, learner in _learners(simulation):
        tensors |= {f"{name}.{key}": value for key, value in learner.state().items()}
    for number, store in enumerate(hosts.stores):
        tensors[f"store.{number}"] = store.batches
    tensors["registers"] = torch.from_numpy(hosts.registers)
    tensors["replay.inputs"] = torch.from_numpy(np.ascontiguousarray(hosts.replay.inputs))
    tensors["replay.kept"] = torch.from_numpy(np.ascontiguousarray(hosts.replay.kept))
    tensors |= {f"losses.guests.{epoch}": loss for epoch, loss in enumerate(guests.losses)}
    tensors |= {f"losses.hosts.{epoch}": loss for epoch, loss in enumerate(hosts.losses)}
    if owner is not None:
        tensors |= {f"owner.{key}": value for key, value in owner.state().items()}
    position = {
        "guests": guests.epoch,
        "hosts": hosts.epoch,
        "host_steps": hosts.steps,
        "owner": owner.epoch if owner else None,
        "written": hosts.replay.written,
        "drawn": [chains.drawn for chains in _chains(simulation)],
        "seconds": simulation.watch.totals(),
    }
    with replacing(path) as temporary:
        save_file({k: v.contiguous() for k, v in tensors.items()}, temporary, {"position": json.dumps(position)})


def restore(simulation: Dvfl, path: Path) -> None:
    """Brings a freshly made simulation of the same data, settings, seeds and faults to where the file was written."""
    with safe_open(path, "pt") as file:
        position: dict[str, Any] = json.loads(file.metadata()["position"])
    tensors = load_file(path)
    guests, hosts = simulation.guests, simulation.hosts
    guests.epoch, hosts.epoch, hosts.steps = position["guests"], position["hosts"], position["host_steps"]
    guests.losses, hosts.losses = _losses(simulation, tensors, "guests"), _losses(simulation, tensors, "hosts")
    hosts.replay.written = position["written"]
    hosts.registers = tensors["registers"].numpy()
    hosts.replay.inputs, hosts.replay.kept = tensors["replay.inputs"].numpy(), tensors["replay.kept"].numpy()
    for number, store in enumerate(hosts.stores):
        if f"store.{number}" in tensors:
            store.batches.copy_(tensors[f"store.{number}"])
    for chains, drawn in zip(_chains(simulation), position["drawn"], strict=True):
        chains.draw(drawn)
    simulation.watch.seconds = dict(position["seconds"])
    for name, learner in _learners(simulation):
        learner.restore({key: tensors[f"{name}.{key}"] for key in learner.state()})
    if position["owner"] is not None:
        owner = simulation.open_owner()
        owner.epoch = position["owner"]
        owner.restore({key.removeprefix("owner."): value for key, value in tensors.items() if key.startswith("owner.")})


def _learners(simulation: Dvfl) -> Iterator[tuple[str, Learner]]:
    for number, group in enumerate(simulation.stack.groups):
        if isinstance(group.guest, Guest):
            yield f"guests-{number}", group.guest.learner
    if isinstance(simulation.stack.host, Host):
        yield "hosts", simulation.stack.host.learner
    yield "head", simulation.stack.owner.learner


def _chains(simulation: Dvfl) -> Iterator[Chains]:
    yield from simulation.guests.chains
    for chains in simulation.hosts.chains.values():
        yield from chains


def _losses(simulation: Dvfl, tensors: dict[str, Tensor], party: str) -> list[Tensor]:
    prefix = f"losses.{party}."
    count = sum(name.startswith(prefix) for name in tensors)
    return [tensors[f"{prefix}{epoch}"].to(simulation.device) for epoch in range(count)]
