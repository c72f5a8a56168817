"""Simulations in which guests and hosts learn by SimCLR."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from replicas import FAULTS, LEARNED, QUICK, SEEDS, SOMETHING, check_replica_is_itself, trained
from sklearn.decomposition import PCA
from torch import nn

from dvfl.audit.readers.readers import ridge
from dvfl.audit.recordings.measured import r2
from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.objectives.warps import Strip
from dvfl.strategies.decoupled.dvfl import Dvfl

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


def inverted(simulation: Dvfl) -> torch.Tensor:
    """What a ridge regression learned from 300 known rows explains of the test rows' columns: (replicas,)."""
    data, stack = simulation.data, simulation.stack
    tables = [[torch.from_numpy(getattr(guest, part)) for guest in data.guests] for part in ("train", "test")]
    known, others = (stack.bare(own).split(stack.latents, 2) for own in tables)
    shares = []
    for guest in range(len(data.guests)):
        x, truth = (own[guest].expand(stack.replicas, -1, -1) for own in tables)
        shares.append(r2(truth, ridge(known[guest][:, :300], x[:, :300])(others[guest])))
    return torch.stack(shares).mean(0)


def test_guests_that_learn_against_a_decoder_are_harder_to_invert(digits: VerticalData) -> None:
    """Also for an attacker that learns afresh, not for the one alone that they learned against."""
    alone = replace(QUICK, guest_objective="simclr", guest_epochs=8, hosts=0)
    without, against = (trained(digits, replace(alone, adversary=weight), (0, 1, 2)) for weight in (0.0, 3.0))
    assert (inverted(against) < inverted(without) - 0.03).all()
    assert against.scores().min() > LEARNED


def test_a_replica_that_learns_against_a_decoder_is_that_seed_trained_alone(digits: VerticalData) -> None:
    check_replica_is_itself(as_images(digits), replace(CONTRASTING, adversary=0.3), FAULTS["all"], 1)


def test_a_guests_own_network_may_learn_against_a_decoder(digits: VerticalData) -> None:
    encoders = [PCA(4), nn.Sequential(nn.Linear(16, 7), nn.Tanh()), None, None]
    simulation = trained(digits, replace(CONTRASTING, adversary=0.3), encoders=encoders)
    assert simulation.scores().min() > SOMETHING


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"guest_noise": 0.1}, "guest_noise 0.1 does not go with guest_objective simclr"),
        ({"temperature": 0.01}, "temperature 0.01: 0.05 or more"),
        ({"batch": 1}, "batch 1: SimCLR"),
        ({"hosts": 0}, "host_objective simclr: there is no host that learns"),
        ({"host_model": "concatenate"}, "host_objective simclr: there is no host that learns"),
        ({"adversary": -0.1}, "adversary -0.1: 0 or more is right"),
        ({"adversary": float("nan")}, "adversary nan: 0 or more is right"),
        ({"adversary": float("inf")}, "adversary inf: 0 or more is right"),
        (
            {"adversary": 0.3, "guest_objective": "reconstruction"},
            "adversary 0.3 does not go with guest_objective reconstruction",
        ),
        ({"guest_objective": "clr"}, "guest_objective clr: reconstruction or simclr is right"),
    ],
    ids=str,
)
def test_what_simclr_cannot_go_with_is_said(digits: VerticalData, change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Dvfl(digits, replace(CONTRASTING, **change), SEEDS)
