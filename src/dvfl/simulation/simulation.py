"""What every strategy's simulation can be asked, whoever runs, shows, stores or scores it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.parties.faults.fault_set import Faults
from dvfl.settings.training import AnySettings
from dvfl.simulation.replica_data import ReplicaData
from dvfl.simulation.rounds import Stopwatch

FLOAT32 = 4  # bytes


@dataclass(frozen=True)
class Flow:
    """What one party sends in one direction, whoever was down to lose some of it."""

    sender: str
    receivers: str
    when: Literal["once, before it", "in training", "once, after it"]
    messages: int  # to all receivers together
    megabytes: float
    leg: Literal["guests", "hosts", "back"]  # by guests, by hosts on to the owner, or back to guests


@dataclass(frozen=True)
class History:
    """Losses of every epoch, (replicas, parties) or (replicas,) each, and scores on held-out rows."""

    guests: Sequence[Tensor] = field(default_factory=list)
    hosts: Sequence[Tensor] = field(default_factory=list)
    labels: Sequence[Tensor] = field(default_factory=list)  # of whoever learns the labels
    held_out: Sequence[Tensor] = field(default_factory=list)


State = tuple[dict[str, Tensor], dict[str, Any]]  # tensors and plain values


class Simulation(Protocol):
    """One stacked simulation. `advance` runs one epoch of whatever is next, until `finished`."""

    data: VerticalData  # of the first replica where each has its own
    seeds: tuple[int, ...]  # one a replica
    faults: tuple[Faults, ...]  # likewise
    device: torch.device
    watch: Stopwatch

    @property
    def settings(self) -> AnySettings: ...
    @property
    def host_count(self) -> int: ...
    @property
    def phase(self) -> str:
        """What the next call of `advance` does."""

    @property
    def epochs_left(self) -> dict[str, int]:
        """Calls of `advance` still to come, by phase, unless something stops early."""

    @property
    def epochs(self) -> int:
        """How many calls of `advance` a whole training takes, unless something stops early."""

    @property
    def done(self) -> int:
        """How many of them are over."""

    @property
    def finished(self) -> bool: ...
    @property
    def stalled(self) -> list[int | None]:
        """The round at which each replica stalled for good, None where it did not."""

    @property
    def repeated(self) -> NDArray[np.int64] | None:
        """Requests that each replica made again, where the strategy asks again."""

    def prepare(self) -> bool:
        """What precedes the next phase, if anything is to be done; whether it was. A good moment for a checkpoint."""

    def advance(self) -> None: ...
    def run(self) -> None: ...
    def outputs(self) -> Tensor:
        """The trained model's outputs for the test rows: (replicas, test rows, outputs)."""

    def scores(self) -> NDArray[np.float64]:
        """Each replica's test accuracy in percent, or R2 of a regression; no number where it stalled."""

    def history(self) -> History: ...
    def flows(self) -> list[Flow]: ...
    def save(self, folder: Path, extra: dict[str, Any]) -> None:
        """Writes the trained parties into a folder."""

    def state(self) -> State:
        """Everything that is needed to go on from here."""

    def restore(self, tensors: dict[str, Tensor], position: dict[str, Any]) -> None:
        """Takes back what `state` gave, in a freshly made simulation of the same data, settings, seeds and faults."""


def scored(data: ReplicaData, outputs: Tensor, stalled: Sequence[int | None]) -> NDArray[np.float64]:
    """Test accuracy in percent, or R2, of outputs (replicas, test rows, outputs)."""
    y = torch.from_numpy(data.test_labels()).to(outputs.device)
    if data.first.classes is not None:
        scores = (outputs.argmax(-1) == y).double().mean(1) * 100
    else:
        errors = (outputs[..., 0] - y).double().square().sum(1)
        scores = 1 - errors / (y - y.mean()).double().square().sum()
    return np.where([at is None for at in stalled], scores.cpu().numpy(), np.nan)


def megabytes_sent_per_guest(flows: Sequence[Flow]) -> float:
    """What a guest sends to train, on average: what it sends in training (the paper's measure), else once after it."""
    sent = [flow for flow in flows if flow.leg == "guests"]
    counted = [flow for flow in sent if flow.when == "in training"] or sent
    return sum(flow.megabytes for flow in counted) / len(counted)


def kept_losses(name: str, losses: Sequence[Tensor]) -> dict[str, Tensor]:
    """Losses by epoch as named tensors, for a checkpoint."""
    return {f"{name}.{epoch}": loss for epoch, loss in enumerate(losses)}


def read_losses(name: str, tensors: dict[str, Tensor], device: torch.device) -> list[Tensor]:
    """Takes back what `kept_losses` gave."""
    count = sum(key.startswith(f"{name}.") for key in tensors)
    return [tensors[f"{name}.{epoch}"].to(device) for epoch in range(count)]
