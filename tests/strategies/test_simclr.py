"""Simulations in which guests and hosts learn by SimCLR."""

from dataclasses import replace
from typing import Any

import pytest
from replicas import FAULTS, LEARNED, QUICK, SEEDS, SOMETHING, check_replica_is_itself, trained
from sklearn.decomposition import PCA
from torch import nn

from dvfl.data.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.warps import Strip
from dvfl.strategies.dvfl import Dvfl

CONTRASTING = replace(QUICK, guest_objective="simclr", host_objective="simclr", batch=100)


def as_images(data: VerticalData) -> VerticalData:
    """The digits' strips as what they are: two rows of eight pixels."""
    strips = [Strip(2, 8, 2 * number, 8) for number in range(len(data.guests))]
    pairs = zip(data.guests, strips, strict=True)
    return replace(data, guests=tuple(replace(guest, image=strip) for guest, strip in pairs))


@pytest.mark.parametrize(
    ("kind", "change"),
    [("none", {"hosts": 0, "host_objective": "reconstruction"}), ("all", {}), ("all", {"registers": "row"})],
    ids=str,
)
def test_a_replica_that_learns_by_simclr_is_that_seed_trained_alone(
    digits: VerticalData, kind: str, change: dict[str, Any]
) -> None:
    data = digits if change else as_images(digits)
    check_replica_is_itself(data, replace(CONTRASTING, guest_dropout=0.3, **change), FAULTS[kind], 1)


def test_digits_are_learned_by_simclr_of_guests_and_of_hosts(digits: VerticalData) -> None:
    for data in (digits, as_images(digits)):
        simulation = trained(data, replace(CONTRASTING, guest_epochs=8))
        assert simulation.scores().min() > LEARNED
        for losses in (simulation.guests.losses, simulation.hosts.losses):
            assert float(losses[-1].mean()) < float(losses[0].mean())


def test_guests_that_are_no_networks_stand_beside_those_that_learn_by_simclr(digits: VerticalData) -> None:
    encoders = [PCA(4), nn.Sequential(nn.Linear(16, 7), nn.Tanh()), None, None]
    simulation = trained(digits, CONTRASTING, encoders=encoders)
    assert simulation.stack.latents[:2] == (4, 7)
    assert simulation.scores().min() > SOMETHING


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"guest_noise": 0.1}, "guest_noise 0.1 does not go with guest_objective simclr"),
        ({"temperature": 0.01}, "temperature 0.01: 0.05 or more"),
        ({"batch": 1}, "batch 1: SimCLR"),
        ({"hosts": 0}, "host_objective simclr: there is no host that learns"),
        ({"host_model": "concatenate"}, "host_objective simclr: there is no host that learns"),
        ({"guest_objective": "clr"}, "guest_objective clr: reconstruction or simclr is right"),
    ],
    ids=str,
)
def test_what_simclr_cannot_go_with_is_said(digits: VerticalData, change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Dvfl(digits, replace(CONTRASTING, **change), SEEDS)
