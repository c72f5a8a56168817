"""Trained simulations asked with guests or hosts missing."""

from dataclasses import replace

import pytest
import torch
from replicas import QUICK, trained

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.host import Host
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import FedVSSettings, SplitSettings
from dvfl.strategies import STRATEGIES
from dvfl.strategies.decoupled.dvfl import Dvfl
from dvfl.strategies.split.split_training import EndToEnd

SPLIT = SplitSettings(batch=32, epochs=15, guest_rule=Adam(5e-3), host_rule=Adam(5e-3), validation=0.0)


@pytest.fixture(scope="module")
def simulation(digits: VerticalData) -> Dvfl:
    return trained(digits, replace(QUICK, guest_dropout=0.3, host_dropout=0.3, partial=1))


def test_everyone_there_is_the_same_as_nobody_named(simulation: Dvfl) -> None:
    torch.testing.assert_close(simulation.outputs(range(4), range(2)), simulation.outputs())


def test_a_missing_guest_is_its_absent_value_at_every_host(simulation: Dvfl) -> None:
    stack = simulation.stack
    assert isinstance(stack.host, Host)
    b = stack.encode_guests(simulation.tables.test()).clone()
    start, width = sum(stack.latents[:2]), stack.latents[2]
    encoded = []
    for host in range(2):
        values = stack.host.learner.parameters.view(2, 2, -1)[:, host, None, start : start + width]
        b[..., start : start + width] = values
        encoded.append(stack.encode_hosts(b).unflatten(2, (2, -1))[:, :, host])
    torch.testing.assert_close(simulation.outputs(guests=[0, 1, 3]), stack.predict(torch.cat(encoded, 2)))


def test_a_missing_host_is_its_absent_value_at_the_owner(simulation: Dvfl) -> None:
    stack = simulation.stack
    joint = stack.encode(simulation.tables.test())
    width = stack.owner_widths[0]
    absent = stack.owner.learner.parameters[:, None, :width]
    joint[..., :width] = absent * stack.spread[..., :width] + stack.centre[..., :width]
    torch.testing.assert_close(simulation.outputs(hosts=[1]), stack.predict(joint), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("change", [{"host_model": "concatenate"}, {"hosts": 0}], ids=str)
def test_guests_can_be_missing_where_no_host_learns(digits: VerticalData, change: dict[str, object]) -> None:
    simulation = trained(digits, replace(QUICK, guest_dropout=0.3, **change), (5,))  # type: ignore[arg-type]
    y = torch.from_numpy(digits.y_test)
    assert (simulation.outputs([0, 1, 2]).argmax(-1) == y).double().mean() > 0.5


def test_party_wise_dropout_helps_a_split_network_without_a_guest(digits: VerticalData) -> None:
    y = torch.from_numpy(digits.y_test)
    scores = []
    for dropout in (0.0, 0.3):
        simulation = STRATEGIES.find("splitnn-zeros")(digits, replace(SPLIT, guest_dropout=dropout), (5, 11))
        assert isinstance(simulation, EndToEnd)
        simulation.run()
        torch.testing.assert_close(simulation.outputs(range(4)), simulation.outputs())
        outputs = [simulation.outputs([g for g in range(4) if g != gone]) for gone in range(4)]
        scores.append(torch.stack([(one.argmax(-1) == y).double().mean() for one in outputs]).mean())
    assert scores[1] > scores[0] + 0.05


def test_a_replica_of_a_split_network_with_hidden_guests_is_its_seed_trained_alone(digits: VerticalData) -> None:
    settings = replace(SPLIT, guest_dropout=0.3, dropout=0.2, epochs=3)
    stack, alone = (STRATEGIES.find("splitnn-zeros")(digits, settings, seeds) for seeds in ((5, 11), (11,)))
    for simulation in (stack, alone):
        simulation.run()  # type: ignore[attr-defined]
    torch.testing.assert_close(stack.outputs()[1], alone.outputs()[0], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(("name", "settings"), [("vfb2", SPLIT), ("fedvs", FedVSSettings(epochs=1))])
def test_hosts_that_read_sums_cannot_hide_guests(digits: VerticalData, name: str, settings: SplitSettings) -> None:
    with pytest.raises(UserError, match="reads sums alone"):
        STRATEGIES.find(name)(digits, replace(settings, guest_dropout=0.1), (0,))
