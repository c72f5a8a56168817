"""The paper's Algorithm 1 as plain PyTorch computes what the package's stacked simulation computes."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.numerics.randomness import batches
from dvfl.parties.objectives.objective import Objective, Reconstruction
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.plain_loops import sequential

PATH = Path(__file__).resolve().parents[2] / "examples" / "algorithm_1.py"
SEED, ROWS, BATCH = 3, 300, 32  # the last batch of an epoch is completed with rows of the same shuffle
GUEST_EPOCHS, HOST_EPOCHS, OWNER_EPOCHS = 2, 4, 3
TOLERANCE = 1e-4  # of the way that a party's parameters have come; rounding alone makes about 1e-6


def imported_example() -> Any:
    spec = importlib.util.spec_from_file_location("algorithm_1", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = imported_example()


@pytest.fixture(scope="module")
def digits() -> VerticalData:
    """Four strips of 16 pixels."""
    images, y = load_digits(return_X_y=True)
    strips = np.split((images / 16).astype(np.float32), 4, axis=1)
    guests = tuple(
        GuestTable(f"guest-{i + 1}", strip[:ROWS].copy(), strip[-200:].copy(), unit=True)
        for i, strip in enumerate(strips)
    )
    labels = y.astype(np.int64)
    return VerticalData("digits", guests, labels[:ROWS], labels[-200:], tuple("0123456789"), sizes="mnist")


class PlainParties:
    """The example's parties with a simulation's parameters and tables."""

    def __init__(self, simulation: Dvfl) -> None:
        stack, data = simulation.stack, simulation.data
        [group], head = stack.groups, stack.owner.supervision.head
        assert isinstance(group.guest, Guest) and isinstance(stack.host, Host) and isinstance(head, Mlp)
        self.guests = [
            copied(example.make_guest(16, *group.guest.objective.encoder.widths[1:]), group.guest.objective, flat)
            for flat in group.guest.learner.parameters
        ]
        self.hosts = [
            copied(example.make_host(stack.joint, stack.sizes.host_latent), stack.host.objective, flat)
            for flat in stack.host.learner.parameters[:, stack.host.absence.size :]
        ]
        self.head = example.make_head(len(self.hosts), stack.sizes.host_latent, 10)
        self.head.load_state_dict(sequential(head, owner_flat(simulation)).state_dict())
        self.tables = [torch.from_numpy(guest.train) for guest in data.guests]
        self.tests = [torch.from_numpy(guest.test) for guest in data.guests]
        self.labels = torch.from_numpy(data.y_train)

    def train(self, period: int) -> None:
        parties = self.guests, self.hosts, self.tables
        example.train_guests_and_hosts(*parties, order("rows", GUEST_EPOCHS), HOST_EPOCHS, period)
        example.train_owner(self.head, *parties, self.labels, order("owner", OWNER_EPOCHS))

    def outputs(self) -> Tensor:
        return self.head(example.encode(self.guests, self.hosts, self.tests)).detach()

    def flat(self) -> dict[str, Tensor]:
        """Every party's parameters as one vector."""
        named = {f"guest {i}": guest for i, guest in enumerate(self.guests)}
        named |= {f"host {i}": host for i, host in enumerate(self.hosts)} | {"head": self.head}
        return {name: nn.utils.parameters_to_vector(module.parameters()).detach() for name, module in named.items()}


def copied(party: Any, objective: Objective, flat: Tensor) -> Any:
    """A party of the example with a stack element's parameters."""
    assert isinstance(objective, Reconstruction)
    cut = objective.encoder.size
    for module, net, part in (
        (party.encoder, objective.encoder, flat[:cut]),
        (party.decoder, objective.decoder, flat[cut:]),
    ):
        assert isinstance(net, Mlp)
        module.load_state_dict(sequential(net, part).state_dict())
    return party


def owner_flat(simulation: Dvfl) -> Tensor:
    owner = simulation.stack.owner
    return owner.learner.parameters[0, owner.absence.size :]


def order(purpose: str, epochs: int) -> list[Sequence[Tensor]]:
    """The simulation's row numbers of each batch of each epoch."""
    return [torch.from_numpy(batches(ROWS, BATCH, SEED, purpose, epoch)).long().unbind() for epoch in range(epochs)]


def settings(period: int) -> Settings:
    return Settings(
        hosts=2,
        batch=BATCH,
        guest_epochs=GUEST_EPOCHS,
        host_epochs=HOST_EPOCHS,
        owner_epochs=OWNER_EPOCHS,
        period=period,
        validation=0.0,
        replay="in order",
        history_dtype="float32",
        guest_hidden=25,
        w_g=80,
        w_h=40,
    )


@pytest.mark.parametrize("period", [1, 2])
def test_the_example_computes_what_the_stack_computes(digits: VerticalData, period: int) -> None:
    simulation = Dvfl(digits, settings(period), [SEED])
    plain = PlainParties(simulation)
    start = plain.flat()
    simulation.run()
    plain.train(period)
    trained = plain.flat()
    for name, expected in PlainParties(simulation).flat().items():
        assert (trained[name] - expected).norm() < TOLERANCE * (expected - start[name]).norm(), name
    outputs = simulation.outputs()[0]
    assert (plain.outputs() - outputs).norm() < TOLERANCE * outputs.norm()


def test_the_example_runs_as_a_script_and_learns() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, PATH], capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, run.stderr
    printed = re.fullmatch(r"test accuracy ([\d.]+) %\n", run.stdout)
    assert printed and float(printed[1]) > 85
