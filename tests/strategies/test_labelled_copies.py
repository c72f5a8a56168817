"""Copies of labelled rows: alike in all strips, agreed without a word, and what owners and hosts make of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, limited_intersection
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import Fault, Faults
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import FedVSSettings, Settings, SplitSettings
from dvfl.simulation.labelled_copies import LabelledCopies
from dvfl.simulation.simulation import Simulation
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.fedonce import FedOnce

CPU, SEEDS, LABELS = torch.device("cpu"), (5, 11), 60
QUICK = Settings(
    hosts=2,
    guest_epochs=4,
    host_epochs=4,
    owner_epochs=20,
    owner_rule=Adam(5e-3),
    standardise=True,
    validation=0.0,
    copies=3,
)


@pytest.fixture(scope="module")
def images() -> VerticalData:
    """Digits in four strips, of which few have labels."""
    return limited_intersection(load("digits"), LABELS, 0)


def test_all_guests_alter_a_copy_alike_and_each_copy_in_its_own_way(images: VerticalData) -> None:
    """A picture of one shade gets the shade of its pattern."""
    even = [torch.ones(LABELS, guest.columns) for guest in images.guests]
    made = LabelledCopies(images, 4, SEEDS, CPU)
    copies = torch.stack([torch.stack(made.tables(number, even)) for number in range(1, 5)])
    shades = copies[:, 0, :, :, 0]  # (copies, replicas, rows) of the first guest
    torch.testing.assert_close(copies, shades[:, None, :, :, None].expand_as(copies))
    assert len(shades.unique()) > 0.9 * shades.numel()


def test_copies_follow_from_the_seed_alone(images: VerticalData) -> None:
    tables = [torch.from_numpy(guest.train[:LABELS]) for guest in images.guests]
    once, again = (LabelledCopies(images, 2, seeds, CPU).joined(tables) for seeds in ((5, 11), (11,)))
    for ours, theirs in zip(once, again, strict=True):
        assert ours.shape[:2] == (2, 3 * LABELS)
        assert torch.equal(ours[1], theirs[0])
        assert not torch.equal(ours[0], ours[1])


def test_the_owner_gets_the_rows_first_and_then_their_copies(images: VerticalData) -> None:
    simulation = Dvfl(images, replace(QUICK, guest_epochs=1, host_epochs=1), SEEDS)
    while simulation.phase != "owner":
        simulation.advance()
    joint = simulation.collect()
    assert joint.shape[:2] == (2, 4 * LABELS)
    clean = simulation.stack.encode(simulation.tables.labelled())
    torch.testing.assert_close(joint[:, :LABELS], clean)
    for copy in joint[:, LABELS:].split(LABELS, 1):
        assert not torch.allclose(copy, clean, atol=1e-3)


def test_a_replica_with_copies_is_that_seed_trained_alone(images: VerticalData) -> None:
    settings = replace(QUICK, validation=0.2, smoothing=0.1, owner_dropout=0.3)
    stack, alone = Dvfl(images, settings, SEEDS), Dvfl(images, settings, SEEDS[1:])
    for simulation in (stack, alone):
        simulation.run()
    ours, theirs = alone.stack.owner.learner.parameters[0], stack.stack.owner.learner.parameters[1]
    assert (ours - theirs).norm() <= 1e-4 * theirs.norm()


def test_what_is_sent_counts_the_copies(images: VerticalData) -> None:
    def once(copies: int) -> float:
        flows = Dvfl(images, replace(QUICK, copies=copies), SEEDS).flows()
        return sum(flow.megabytes for flow in flows if flow.when == "once, after it")

    assert once(3) == pytest.approx(4 * once(0))


def test_a_guest_that_is_no_network_encodes_copies_as_well(images: VerticalData) -> None:
    simulation = Dvfl(images, QUICK, SEEDS, encoders=[PCA(4), None, None, None])
    simulation.run()
    assert simulation.scores().min() > 30


def test_messages_with_copies_may_be_lost(images: VerticalData) -> None:
    lossy = Faults((Fault("connection", 0.5, 0.5),))
    simulation = FedOnce(images, replace(QUICK, batch=16), SEEDS, insists=False, faults=lossy)
    while simulation.phase != "owner":
        simulation.advance()
    gone = simulation.collect()[..., 0].isnan().view(2, 4, LABELS).float().mean((0, 2))  # of the first guest
    assert ((gone > 0.1) & (gone < 0.9)).all()
    simulation.run()
    assert simulation.scores().min() > 30


@pytest.mark.parametrize("name", ["splitnn-wait", "vafl", "vfb2"])
def test_split_networks_learn_from_copies(images: VerticalData, name: str) -> None:
    rule = Adam(5e-3)
    settings = SplitSettings(
        batch=32, epochs=30, guest_rule=rule, host_rule=rule, validation=0.2, copies=3, head=(40,), w_g=64
    )
    simulation: Simulation = STRATEGIES.find(name)(images, settings, SEEDS)
    while not simulation.finished:
        simulation.advance()
    assert simulation.scores().min() > 60


@pytest.mark.parametrize("name", ["dvfl", "splitnn-wait"])
def test_copies_of_what_is_no_image_are_refused(digits: VerticalData, name: str) -> None:
    settings = Settings(copies=1) if name == "dvfl" else SplitSettings(copies=1)
    with pytest.raises(UserError, match="the rows of guest-1 are no strips of images"):
        STRATEGIES.find(name)(digits, settings, SEEDS)


def test_other_copies_that_cannot_be_are_refused(images: VerticalData) -> None:
    with pytest.raises(UserError, match="copies -1: 0 or more"):
        Dvfl(images, replace(QUICK, copies=-1), SEEDS)
    with pytest.raises(UserError, match="fedvs codes the rows as they are"):
        STRATEGIES.find("fedvs")(images, FedVSSettings(copies=2), SEEDS)


def test_standardisation_is_over_rows_and_copies(images: VerticalData) -> None:
    simulation = Dvfl(images, replace(QUICK, guest_epochs=1, host_epochs=1), SEEDS)
    while simulation.phase != "owner":
        simulation.advance()
    joint = simulation.collect()
    simulation.open_owner()
    np.testing.assert_allclose(simulation.stack.centre[:, 0].numpy(), joint.mean(1).numpy(), atol=1e-5)
