"""Labelled rows encoded once more with guests hidden: which are, what the owner trains on, and what it learns by it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from replicas import FAULTS, QUICK, check_replica_is_itself, trained

from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, limited_intersection, with_absences
from dvfl.errors import UserError
from dvfl.parties.pass_masks import shown
from dvfl.settings.training import Settings
from dvfl.simulation.checkpoint import restore, save
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.fedonce import FedOnce

PARTIAL = replace(QUICK, guest_dropout=0.3, partial=2)
SEEDS = (5, 11)


def before_owner(data: VerticalData, settings: Settings) -> Dvfl:
    simulation = Dvfl(data, replace(settings, guest_epochs=1, host_epochs=1), SEEDS)
    while simulation.phase != "owner":
        simulation.advance()
    return simulation


def test_a_replica_with_partial_passes_is_its_seed_trained_alone(digits: VerticalData) -> None:
    check_replica_is_itself(digits, replace(PARTIAL, host_dropout=0.2, validation=0.2), FAULTS["none"], 1)


def test_the_owner_gets_rows_as_they_are_and_then_with_the_guests_of_each_pass_hidden(digits: VerticalData) -> None:
    simulation = before_owner(digits, PARTIAL)
    joint, tables = simulation.collect(), simulation.tables.labelled()
    plain, *passes = joint.split(digits.rows, 1)
    torch.testing.assert_close(plain, simulation.stack.encode(tables))
    for number, encodings in enumerate(passes, 1):
        marks = [shown(seed, number, np.arange(digits.rows), 4, 0.3) for seed in SEEDS]
        present = torch.from_numpy(np.stack(marks))
        torch.testing.assert_close(encodings, simulation.stack.encode(tables, present=present))
        same = (encodings == plain).all(2)
        assert torch.equal(same, present.all(2))


def test_rows_that_lack_guests_are_not_left_with_none(digits: VerticalData) -> None:
    lacking = with_absences(digits, 0.5, 0)
    simulation = before_owner(lacking, PARTIAL)
    present = simulation.tables.labelled_present()
    assert present is not None
    nobody = simulation.stack.encode(simulation.tables.labelled(), present=torch.zeros_like(present))
    for encodings in simulation.collect().split(len(lacking.y_train), 1):
        assert not (encodings == nobody).all(2).any()


def test_partial_passes_come_after_copies(digits: VerticalData) -> None:
    images = limited_intersection(load("digits"), 60, 0)
    simulation = before_owner(images, replace(PARTIAL, copies=1))
    joint = simulation.collect()
    without = before_owner(images, replace(PARTIAL, copies=1, partial=0)).collect()
    assert joint.shape[1] == 4 * 60
    torch.testing.assert_close(joint[:, :120], without)
    simulation.run()
    assert np.isfinite(simulation.scores()).all()


def test_standardisation_is_over_the_rows_as_they_are(digits: VerticalData) -> None:
    simulation = before_owner(digits, PARTIAL)
    plain = simulation.collect()[:, : digits.rows]
    simulation.open_owner()
    np.testing.assert_allclose(simulation.stack.centre[:, 0].numpy(), plain.mean(1).numpy(), atol=1e-5)


def test_an_owner_that_met_hidden_guests_does_better_without_one(digits: VerticalData) -> None:
    settings = replace(QUICK, guest_epochs=10, host_epochs=20, owner_epochs=40)
    never, often = (
        trained(digits, replace(settings, **change)) for change in ({}, {"guest_dropout": 0.3, "partial": 2})
    )
    y = torch.from_numpy(digits.y_test)

    def without_one(simulation: Dvfl) -> float:
        outputs = [simulation.outputs(guests=[g for g in range(4) if g != gone]) for gone in range(4)]
        return float(np.mean([(one.argmax(-1) == y).double().mean() for one in outputs]))

    assert without_one(often) > without_one(never) + 0.05


def test_hosts_send_the_owner_more_and_guests_send_no_more(digits: VerticalData) -> None:
    more, once = Dvfl(digits, PARTIAL, SEEDS).flows(), Dvfl(digits, replace(PARTIAL, partial=0), SEEDS).flows()
    for ours, theirs in zip(more, once, strict=True):
        factor = 3 if ours.receivers == "owner" else 1
        assert ours.megabytes == pytest.approx(factor * theirs.megabytes)


def test_a_checkpoint_goes_on_to_the_same_end(digits: VerticalData, tmp_path) -> None:
    settings = replace(PARTIAL, guest_epochs=2, host_epochs=3, owner_epochs=4)
    whole = trained(digits, settings)
    begun = Dvfl(digits, settings, SEEDS)
    for _ in range(5):
        begun.advance()
    assert begun.phase == "owner"
    save(begun, tmp_path / "checkpoint")
    resumed = Dvfl(digits, settings, SEEDS)
    restore(resumed, tmp_path / "checkpoint")
    resumed.run()
    assert torch.equal(resumed.outputs(), whole.outputs())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partial": -1}, "partial -1: 0 or more is right"),
        ({"guest_dropout": 0.0}, "hides nobody"),
        ({"hosts": 0}, "no host learns here"),
        ({"host_model": "concatenate"}, "no host learns here"),
    ],
    ids=str,
)
def test_passes_that_cannot_be_are_refused(digits: VerticalData, change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Dvfl(digits, replace(PARTIAL, **change), SEEDS)  # type: ignore[arg-type]


def test_fedonce_makes_no_passes(digits: VerticalData) -> None:
    with pytest.raises(UserError, match="no host learns here"):
        FedOnce(digits, PARTIAL, SEEDS, insists=True)


def test_a_dimension_that_hidden_guests_alone_move_does_not_upset_the_owner(digits: VerticalData) -> None:
    simulation = before_owner(digits, PARTIAL)
    joint = simulation.collect()
    rows = digits.rows
    joint[:, :rows, 0] = torch.rand(2, rows) * 1e-3
    joint[:, rows:, 0] = 5.0
    simulation.collect = lambda: joint  # type: ignore[method-assign]
    simulation.open_owner()
    simulation.run()
    assert simulation.stack.spread[:, 0, 0].min() > 1
    assert torch.isfinite(simulation.outputs()).all()
