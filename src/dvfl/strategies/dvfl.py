"""Decoupled vertical federated learning (the paper's Algorithm 1), all replicas at once.

Phase 1 is unsupervised: guests train and push encodings (dvfl.strategies.encoding), hosts train on what their registers
hold and then on their replay buffers (dvfl.strategies.aggregation). Nothing flows back, so an epoch of guests and the
hosts' epoch on its messages run one after the other. Phase 2 is the owner's (dvfl.strategies.supervision).
"""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dvfl.data.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults import Fault
from dvfl.strategies.aggregation import HostPhase
from dvfl.strategies.encoding import GuestPhase
from dvfl.strategies.machine import keep_freed_memory
from dvfl.strategies.rounds import Stopwatch
from dvfl.strategies.settings import Settings
from dvfl.strategies.stack import Encoder, Shape, Stack
from dvfl.strategies.supervision import OwnerPhase


class Dvfl:
    """One stacked simulation. `advance` runs one epoch of whatever is next, until `finished`."""

    def __init__(
        self,
        data: VerticalData,
        settings: Settings,
        seeds: Sequence[int],
        *,
        faults: Sequence[Fault] = (),
        device: torch.device | str = "cpu",
        encoders: Sequence[Encoder | None] | None = None,
    ) -> None:
        _check(data, settings)
        self.data, self.settings, self.faults = data, settings, tuple(faults)
        self.device = torch.device(device)
        columns, unit = (tuple(getattr(guest, field) for guest in data.guests) for field in ("columns", "unit"))
        shape = Shape(columns, unit, data.sizes, len(data.classes or ()))
        self.stack = Stack(shape, settings, seeds, self.device, _fitted(encoders, data))
        self.watch = Stopwatch(self.device)
        names = [guest.name for guest in data.guests]
        iterations = -(-data.rows // settings.batch)
        if self.device.type == "cpu":
            keep_freed_memory()
        self.hosts = HostPhase(self.stack, names, iterations, faults, self.watch)
        self.guests = GuestPhase(self.stack, data, self.hosts, faults, self.watch)
        self.owner: OwnerPhase | None = None

    @property
    def phase(self) -> str:
        """What the next call of `advance` does."""
        if not self.guests.finished:
            return "guests and hosts"
        return "owner" if self.hosts.finished else "hosts, replay"

    @property
    def epochs(self) -> int:
        """How many calls of `advance` a whole training takes, unless the owner stops early."""
        replayed = self.settings.replayed if self.hosts.wanted else 0
        return self.settings.guest_epochs + replayed + self.settings.owner_epochs

    @property
    def done(self) -> int:
        """How many of them are over."""
        replayed = max(0, self.hosts.epoch - self.settings.communicated)
        return self.guests.epoch + replayed + (self.owner.epoch if self.owner else 0)

    @property
    def finished(self) -> bool:
        return self.owner is not None and self.owner.finished

    @torch.no_grad()
    def advance(self) -> None:
        """Runs one epoch."""
        with self.stack.suited(self.settings.batch):
            if self.phase == "guests and hosts":
                self.guests.advance()
            elif self.phase == "hosts, replay":
                self.hosts.advance()
            else:
                self.watch.time("owner", self._owner_epoch)

    def run(self) -> None:
        """Runs what is left."""
        while not self.finished:
            self.advance()

    def open_owner(self) -> OwnerPhase:
        """Collects the encodings of all labelled rows once (Algorithm 1, owner lines 6 to 14)."""
        if self.owner is None:
            self.hosts.stores.clear()  # the history has served; its memory is needed
            joint = self.stack.encode([guest.train for guest in self.data.guests])
            self.owner = OwnerPhase(self.stack, joint, self.data.y_train)
        return self.owner

    def outputs(self) -> Tensor:
        """The trained owners' outputs for the test rows: (replicas, test rows, outputs)."""
        return self.stack.predict(self.stack.encode([guest.test for guest in self.data.guests]))

    def scores(self) -> NDArray[np.float64]:
        """Each replica's test accuracy in percent, or R2 of a regression."""
        y = torch.from_numpy(np.ascontiguousarray(self.data.y_test)).to(self.device)
        outputs = self.outputs()
        if self.data.classes is not None:
            return (outputs.argmax(-1) == y).double().mean(1).mul(100).cpu().numpy()
        errors = (outputs[..., 0] - y).double().square().sum(1)
        return (1 - errors / (y - y.mean()).double().square().sum()).cpu().numpy()

    def _owner_epoch(self) -> None:
        owner = self.open_owner()
        owner.advance()
        if owner.finished:
            owner.finish()


def _fitted(encoders: Sequence[Encoder | None] | None, data: VerticalData) -> list[Encoder | None] | None:
    """The users' encoders, copied; those that are no networks fitted to their guest's training rows."""
    if encoders is None:
        return None
    if len(encoders) != len(data.guests):
        return list(encoders)  # refused by Stack
    models: list[Encoder | None] = []
    for guest, given in zip(data.guests, encoders, strict=True):
        model = copy.deepcopy(given)
        if model is not None and not isinstance(model, nn.Module):
            model.fit(guest.train)
        models.append(model)
    return models


def _check(data: VerticalData, s: Settings) -> None:
    """What cannot be trained is said before anything is."""
    if s.batch > data.rows:
        raise UserError(f"batch {s.batch} is larger than the {data.rows} training rows; at most {data.rows} is right")
    if data.classes is not None and len(np.unique(data.y_train)) < 2:
        raise UserError(f"{data.name}: the labels have one class only; at least two are needed")
    for name in ("batch", "guest_epochs", "owner_epochs", "period"):
        if getattr(s, name) < 1:
            raise UserError(f"{name} {getattr(s, name)}: at least 1 is right")
    for name in ("hosts", "host_epochs"):
        if getattr(s, name) < 0:
            raise UserError(f"{name} {getattr(s, name)}: 0 or more is right")
    for name in ("owner_dropout", "guest_dropout", "host_dropout", "validation"):
        if not 0 <= getattr(s, name) < 1:
            raise UserError(f"{name} {getattr(s, name)}: from 0 to below 1 is right")
    if s.period > s.guest_epochs:
        raise UserError(f"period {s.period}: with {s.guest_epochs} guest epochs nothing would ever be pushed")
