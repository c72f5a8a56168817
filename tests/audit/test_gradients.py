"""Gradients as guests are sent them: against autograd, with dropout and defences, and in a recording."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dvfl.audit.recordings.cases import Case, rows_of
from dvfl.audit.recordings.gradients import sent_back
from dvfl.audit.recordings.recorder import recorded
from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, fewer_rows
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import Settings, SplitSettings
from dvfl.strategies import STRATEGIES
from dvfl.strategies.plain_loops import sequential
from dvfl.strategies.split.split_training import EndToEnd

RULE = Adam(5e-3)
QUICK = SplitSettings(epochs=3, batch=50, guest_rule=RULE, host_rule=RULE, validation=0.0)
ROWS = torch.arange(130)  # not full batches
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits() -> VerticalData:
    return fewer_rows(load("digits"), 400)


def advanced(data: VerticalData, name: str = "splitnn-wait", settings: SplitSettings = QUICK) -> EndToEnd:
    simulation = STRATEGIES.find(name)(data, settings, (3, 4))
    simulation.advance()
    assert isinstance(simulation, EndToEnd)
    return simulation


@pytest.mark.parametrize("name", ["splitnn-wait", "vfb2"])
def test_they_are_the_gradients_of_a_batchs_mean_loss(digits: VerticalData, name: str) -> None:
    simulation = advanced(digits, name, replace(QUICK, w_g=32))
    model, y = simulation.model, torch.from_numpy(digits.y_train)
    sent = sent_back(simulation, ROWS)
    codes = [code.requires_grad_() for code in model.encode([torch.from_numpy(one.train) for one in digits.guests])]
    x = torch.stack(codes).sum(0) if model.summed else torch.cat(codes, 2)
    for replica in range(2):
        out = sequential(model.head, model.host.parameters[replica])(x[replica])
        loss = torch.nn.functional.cross_entropy(out, y, reduction="sum") / QUICK.batch
        expected = torch.autograd.grad(loss, codes, retain_graph=True)
        for own, theirs in zip(sent, expected, strict=True):
            torch.testing.assert_close(own[replica], theirs[replica, ROWS], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    "change",
    [{"dropout": 0.5}, {"guest_noise": 0.5}, {"gradient_noise": 1.0}, {"gradient_defence": "sign"}],
    ids=str,
)
def test_they_are_as_training_sends_them(digits: VerticalData, change: dict[str, Any]) -> None:
    plain, changed = advanced(digits), advanced(digits, settings=replace(QUICK, **change))
    for learner, other in zip(changed.model.learners, plain.model.learners, strict=True):
        learner.parameters.copy_(other.parameters)
    for own, bare in zip(sent_back(changed, ROWS), sent_back(plain, ROWS), strict=True):
        assert own.shape == bare.shape and not torch.allclose(own, bare, rtol=1e-2)
        if "gradient_defence" in change:
            assert torch.equal(own.sign(), bare.sign()) and len(own[0, :50].abs().unique()) == 1
        if "dropout" in change:
            assert (own == 0).float().mean() == pytest.approx(0.5, abs=0.05)


def test_nobody_learns_from_being_looked_at(digits: VerticalData) -> None:
    looked, left = advanced(digits), advanced(digits)
    sent_back(looked, ROWS)
    for simulation in (looked, left):
        simulation.run()
    for one, other in zip(looked.model.learners, left.model.learners, strict=True):
        assert torch.equal(one.parameters, other.parameters)


def test_a_training_that_has_not_begun_has_sent_nothing(digits: VerticalData) -> None:
    simulation = STRATEGIES.find("splitnn-wait")(digits, QUICK, (3,))
    assert isinstance(simulation, EndToEnd)
    with pytest.raises(ValueError, match="no epoch has been run"):
        sent_back(simulation, ROWS)


def test_a_recording_has_the_first_epochs_gradients_and_the_last_ones(digits: VerticalData) -> None:
    training, recording = recorded(Case("splitnn-wait", digits, QUICK, (3, 4), CPU))
    rows, train, _ = rows_of(digits)
    early, late = advanced(digits), training.simulation
    assert isinstance(late, EndToEnd)
    for number, guest in enumerate(recording.guests):
        assert guest.gradients is not None and guest.gradients.shape == (2, 2, rows.trained, guest.z.shape[2])
        for moment, state in enumerate((early, late)):
            expected = sent_back(state, torch.from_numpy(train))[number]
            torch.testing.assert_close(guest.gradients[moment], expected)
    np.testing.assert_array_equal(recording.y[: rows.trained], digits.y_train[train])


def test_dvfl_sends_nothing_back(digits: VerticalData) -> None:
    settings = Settings(hosts=1, guest_epochs=1, host_epochs=1, owner_epochs=1)
    _, recording = recorded(Case("dvfl", digits, settings, (3,), CPU))
    assert all(guest.gradients is None for guest in recording.guests)
