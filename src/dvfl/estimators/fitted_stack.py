"""A trained stack inside an estimator: its losses, as plain data for pickle, and in double precision."""

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dvfl.parties.guest import FittedGuest, Guest
from dvfl.parties.host import Host
from dvfl.parties.networks.modules import ModuleNet
from dvfl.parties.owner import Owner
from dvfl.release.flattening import Flattening
from dvfl.simulation.stack import Encoder, Stack
from dvfl.strategies.decoupled.dvfl import Dvfl

_Party = TypeVar("_Party")


def history(training: Dvfl) -> dict[str, NDArray[np.float32]]:
    """Losses of `guests` and `hosts` (epochs, parties) and `owner` (epochs,), and its `held_out` scores."""
    assert training.owner is not None
    kept = {"guests": training.guests.losses, "hosts": training.hosts.losses}
    kept |= {"owner": training.owner.losses, "held_out": training.owner.held_out}
    return {name: np.array([epoch[0].cpu().numpy() for epoch in epochs]) for name, epochs in kept.items()}


def precise(stack: Stack) -> Stack:
    """The stack in float64: what it says of a row then does not depend on the rows beside it, as float32's sums do."""
    twin = copy.copy(stack)
    twin.groups = [dataclasses.replace(group, guest=_in_double(group.guest)) for group in stack.groups]
    twin.flattenings = [Flattening(one.centre.double(), one.weights.double()) for one in stack.flattenings]
    twin.host, twin.owner = _in_double(stack.host), _in_double(stack.owner)
    twin.centre, twin.spread = stack.centre.double(), stack.spread.double()
    return twin


def packed(stack: Stack) -> dict[str, Any]:
    """What makes the stack again, without gradients, moments and views."""
    return {
        "stack": (stack.shape, stack.settings, stack.seeds, stack.device, user_encoders(stack)),
        "target": (stack.target_centre, stack.target_spread),
        "tensors": [tensor.cpu().numpy() for tensor in _tensors(stack)],
    }


def unpacked(plain: dict[str, Any]) -> Stack:
    """The stack that `packed` described."""
    stack = Stack(*plain["stack"])
    stack.target_centre, stack.target_spread = plain["target"]
    for tensor, values in zip(_tensors(stack), plain["tensors"], strict=True):
        tensor.copy_(torch.tensor(values))
    return stack


def user_encoders(stack: Stack) -> list[Encoder | None]:
    """One a guest: the network or fitted model that the user gave, None for the default."""
    given: dict[int, Encoder | None] = {}
    for group in stack.groups:
        guest = group.guest
        model: Encoder | None = None
        if isinstance(guest, FittedGuest):
            model = guest.model
        elif isinstance(guest.objective.encoder, ModuleNet):
            model = guest.objective.encoder.module
        given |= dict.fromkeys(group.members, model)
    return [given[number] for number in sorted(given)]


def network_guests(encoders: Sequence[Encoder | None]) -> list[int]:
    """Numbers of the guests, from 1, with networks of the user's own."""
    return [number for number, model in enumerate(encoders, 1) if isinstance(model, nn.Module)]


class _FittedGuestInDouble(FittedGuest):
    def encode(self, x: Tensor) -> Tensor:
        return super().encode(x).double()


def _in_double(party: _Party) -> _Party:
    if isinstance(party, FittedGuest):
        return _FittedGuestInDouble(party.models, party.latent)  # type: ignore[return-value]
    twin = copy.copy(party)
    if isinstance(twin, Guest | Host | Owner):
        learner = copy.copy(twin.learner)
        learner.parameters = learner.parameters.double()
        twin.hold(learner)
    return twin


def _tensors(stack: Stack) -> list[Tensor]:
    flattenings = [tensor for one in stack.flattenings for tensor in (one.centre, one.weights)]
    return [*(learner.parameters for learner in stack.learners), *flattenings, stack.centre, stack.spread]
