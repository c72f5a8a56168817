"""Clip and noise in the simulation: on all that leaves a guest, keyed, and nowhere else."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from replicas import FAULTS, LEARNED, QUICK, SEEDS, check_replica_is_itself, learned, trained
from sklearn.decomposition import PCA

from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, fewer_rows, limited_intersection
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import Faults
from dvfl.release.release import Origin
from dvfl.settings.training import Settings
from dvfl.strategies.decoupled.dvfl import Dvfl

CLIP = 0.8  # many encodings are longer
NOISY = replace(QUICK, clip=CLIP, noise=0.1, history_dtype="float32")


def pushed(
    settings: Settings, data: VerticalData, epochs: int = 1, **options: object
) -> tuple[Dvfl, list[torch.Tensor]]:
    """What lies in the stores after so many epochs of pushes, (rounds, replicas, members, batch, latent) a group."""
    simulation = Dvfl(data, settings, SEEDS, **options)  # type: ignore[arg-type]
    for _ in range(epochs):
        simulation.advance()
    rounds = epochs * simulation.guests.iterations
    return simulation, [store.batches[:rounds].clone().unflatten(1, (2, -1)) for store in simulation.hosts.stores]


@pytest.mark.parametrize("kind", ["none", "all"])
@pytest.mark.parametrize("change", [{}, {"registers": "row"}, {"hosts": 0}, {"partial": 1, "guest_dropout": 0.3}])
def test_a_replica_with_noise_is_that_seed_trained_alone(
    digits: VerticalData, kind: str, change: dict[str, object]
) -> None:
    encoders = [None, PCA(6, random_state=0), None, None]
    check_replica_is_itself(digits, replace(NOISY, **change), FAULTS[kind], 1, encoders=encoders)  # type: ignore[arg-type]


def test_a_bound_that_no_encoding_reaches_changes_nothing(digits: VerticalData) -> None:
    even = fewer_rows(digits, 18 * QUICK.batch)  # no row comes twice in an epoch
    plain, bounded = (learned(trained(even, replace(NOISY, clip=clip, noise=0.0))) for clip in (None, 1e6))
    assert all(torch.equal(plain[name], bounded[name]) for name in plain)


def test_pushed_encodings_are_clipped_and_get_noise_of_the_right_strength(digits: VerticalData) -> None:
    _, (raw,) = pushed(replace(NOISY, clip=None, noise=0.0), digits)
    _, (clipped,) = pushed(replace(NOISY, noise=0.0), digits)
    _, (noisy,) = pushed(NOISY, digits)
    assert (raw.norm(dim=-1) > CLIP).float().mean() > 0.2
    assert clipped.norm(dim=-1).max() <= CLIP * (1 + 1e-5)
    noise = (noisy - clipped)[:-1]  # the last batch is filled with rows that came before
    assert abs(float(noise.std()) / (0.1 * CLIP) - 1) < 0.02
    assert abs(float(torch.corrcoef(torch.stack([noise[:, 0].flatten(), noise[:, 1].flatten()]))[0, 1])) < 0.05


def test_noise_does_not_repeat_over_epochs_and_guests(digits: VerticalData) -> None:
    _, (clipped,) = pushed(replace(NOISY, noise=0.0), digits, 2)
    simulation, (noisy,) = pushed(NOISY, digits, 2)
    # Encoders have learned the same: noise reaches no guest's training.
    noise = (noisy - clipped).unflatten(0, (2, simulation.guests.iterations))[:, :-1, 0]
    pieces = torch.stack([noise[epoch, :, guest].flatten() for epoch in range(2) for guest in range(4)])
    assert (torch.corrcoef(pieces) - torch.eye(8)).abs().max() < 0.05


def test_a_row_that_fills_the_last_batch_is_sent_as_it_was_first(digits: VerticalData) -> None:
    simulation, (noisy,) = pushed(NOISY, digits)
    again = simulation.guests.iterations * QUICK.batch - digits.rows
    assert again > 0
    assert torch.equal(noisy[-1][:, :, -again:], noisy[0][:, :, :again])


def test_a_guest_with_fewer_rows_sends_each_once_an_epoch_however_often_it_comes(digits: VerticalData) -> None:
    data = limited_intersection(digits, 100, 0)
    short = replace(data.guests[1], train=data.guests[1].train[:150])
    data = replace(data, guests=(data.guests[0], short, *data.guests[2:]))
    _, (noisy,) = pushed(NOISY, data)
    rows = noisy[:, 0].transpose(0, 1).flatten(1, 2)  # of each guest
    assert len(rows[0].unique(dim=0)) == len(data.guests[0].train)
    assert len(rows[1].unique(dim=0)) == 150


def test_hosts_learn_from_what_was_released(digits: VerticalData) -> None:
    plain, noisy = (learned(trained(digits, settings)) for settings in (replace(NOISY, noise=0.0), NOISY))
    assert torch.equal(plain["guests (0, 1, 2, 3)"], noisy["guests (0, 1, 2, 3)"])
    assert not torch.allclose(plain["hosts"], noisy["hosts"], rtol=1e-2)


def test_the_owner_gets_the_same_noise_of_a_row_in_every_pass_and_the_audit_too(digits: VerticalData) -> None:
    simulation = Dvfl(digits, replace(NOISY, hosts=0), SEEDS)
    collected = simulation.collect()
    torch.testing.assert_close(collected, simulation.collect(), rtol=0, atol=0)
    some = np.array([500, 3, 77])
    tables = [torch.from_numpy(guest.train[some]) for guest in digits.guests]
    torch.testing.assert_close(simulation.stack.encode_guests(tables, Origin("train", some)), collected[:, some])
    other = simulation.stack.encode_guests(tables, Origin("test", some))
    assert (other - collected[:, some]).abs().max() > 0.05


def test_predictions_are_made_from_released_encodings_and_do_not_change_when_asked_again(digits: VerticalData) -> None:
    simulation = trained(digits, replace(NOISY, noise=0.5))
    assert torch.equal(simulation.outputs(), simulation.outputs())
    loud = Dvfl(digits, replace(NOISY, noise=20.0), SEEDS)
    for group, theirs in zip(loud.stack.learners, simulation.stack.learners, strict=True):
        group.parameters.copy_(theirs.parameters)
    assert (loud.outputs() - simulation.outputs()).abs().max() > 1


def test_copies_have_noise_of_their_own() -> None:
    images = fewer_rows(load("digits"), 600)
    clean, noisy = (
        Dvfl(images, replace(NOISY, hosts=0, copies=2, noise=noise), SEEDS).collect() for noise in (0.0, 0.1)
    )
    noise = torch.stack([part[0].flatten() for part in (noisy - clean).split(images.rows, 1)])
    assert (torch.corrcoef(noise) - torch.eye(3)).abs().max() < 0.05


def test_partial_passes_have_the_noise_of_the_rows_themselves(digits: VerticalData) -> None:
    s = replace(NOISY, partial=1, guest_dropout=1e-9)  # nobody is ever hidden
    rows, again = Dvfl(digits, s, SEEDS).collect().split(digits.rows, 1)
    torch.testing.assert_close(rows, again)


def test_encodings_that_are_clipped_must_say_which_rows_they_are(digits: VerticalData) -> None:
    stack = Dvfl(digits, NOISY, SEEDS).stack
    with pytest.raises(ValueError, match="Origin"):
        stack.encode([guest.test for guest in digits.guests])


@pytest.mark.parametrize("change", [{"clip": 0.0}, {"clip": math.nan}, {"noise": -1.0}, {"clip": None}])
def test_what_means_nothing_is_refused_before_the_training(digits: VerticalData, change: dict[str, float]) -> None:
    with pytest.raises(UserError, match=r"clip|noise"):
        Dvfl(digits, replace(NOISY, **change), SEEDS)


def test_a_history_shorter_than_an_epoch_is_refused(digits: VerticalData) -> None:
    with pytest.raises(UserError, match="history_bytes"):
        Dvfl(digits, replace(NOISY, history_bytes=100_000), SEEDS)
    assert Dvfl(digits, replace(NOISY, clip=None, noise=0.0, history_bytes=100_000), SEEDS).hosts.rounds_at_once < 19


def test_little_noise_still_lets_digits_be_learned(digits: VerticalData) -> None:
    assert trained(digits, replace(NOISY, clip=3.0, noise=0.02), faults=Faults(())).scores().min() > LEARNED


@pytest.mark.parametrize(
    ("change", "releases"),
    [
        ({}, 5),
        ({"period": 2}, 3),
        ({"host_epochs": 1}, 5),  # hosts see what they do not train on
        ({"hosts": 0}, 1),
        ({"host_model": "concatenate"}, 1),
        ({"copies": 3}, 8),
        ({"partial": 3, "guest_dropout": 0.3}, 5),
    ],
)
def test_releases_are_counted_from_what_a_row_gives_away(change: dict[str, object], releases: int) -> None:
    assert replace(NOISY, **change).releases == releases  # type: ignore[arg-type]
