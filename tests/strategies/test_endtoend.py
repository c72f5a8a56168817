"""Split networks as stacks: replicas that are alone in all but time, early stopping, whole trainings, refusals."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from split_networks import (
    CRASHES,
    FICKLE,
    NAMES,
    ROUNDS,
    SETTINGS,
    learned,
    made,
    recorded,
    trained,
)

from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.settings.training import SplitSettings
from dvfl.strategies.split.split_training import EndToEnd
from dvfl.strategies.split.splitnn import Missing

QUICK = SplitSettings(epochs=20, guest_rule=Adam(5e-3), host_rule=Adam(5e-3), validation=0.0)
VARIANTS: tuple[Missing, ...] = get_args(Missing)
PlainSplits = Callable[[EndToEnd], Any]
Bools = NDArray[np.bool_]


# Stacks.

MIXED = (NO_FAULTS, CRASHES, recorded(Outage("guest-2", 3, 14), Outage("host-1", 21, 22)), CRASHES)
MIXED_SEEDS = (5, 11, 5, 5)


def check_replicas(data: VerticalData, missing: Missing, settings: SplitSettings, faults: Sequence[Faults]) -> None:
    """Each replica of a stack is what it is alone."""
    stack = trained(data, missing, settings, MIXED_SEEDS, faults=faults)
    for number, (seed, fault) in enumerate(zip(MIXED_SEEDS, faults, strict=True)):
        alone = trained(data, missing, settings, (seed,), faults=fault)
        assert stack.stalled[number] == alone.stalled[0]
        if stack.repeated is not None and alone.repeated is not None:
            assert stack.repeated[number] == alone.repeated[0]
        for ours, theirs in zip(learned(stack), learned(alone), strict=True):
            assert (ours[number] - theirs[0]).norm() <= 1e-4 * theirs[0].norm()
        np.testing.assert_array_equal(stack.scores()[number], alone.scores()[0])


@pytest.mark.parametrize("missing", VARIANTS)
def test_a_replica_of_a_stack_with_mixed_faults_is_that_seed_and_those_faults_alone(
    unequal_digits: VerticalData, missing: Missing
) -> None:
    check_replicas(unequal_digits, missing, replace(SETTINGS, dropout=0.3, retries=2), MIXED)


@pytest.mark.parametrize("missing", ["skip", "zeros", "buffer", "mean"])
def test_a_replica_that_stops_early_is_that_seed_alone(digits: VerticalData, missing: Missing) -> None:
    check_replicas(digits, missing, FICKLE, MIXED)
    stack = trained(digits, missing, FICKLE, MIXED_SEEDS, faults=MIXED)
    assert len({int(learns) for learns in stack.model.host.steps}) > 1 and stack.done < FICKLE.epochs


def test_a_replica_that_has_stopped_early_asks_nobody_any_more(digits: VerticalData) -> None:
    stack = trained(digits, "wait", FICKLE, (5, 6), faults=CRASHES)
    alone = trained(digits, "wait", FICKLE, (5,), faults=CRASHES)
    assert stack.repeated is not None and alone.repeated is not None
    assert stack.repeated[0] == alone.repeated[0]


def test_a_replica_that_has_stopped_early_does_not_stall_any_more(digits: VerticalData) -> None:
    faults = [recorded(Outage("guest-1", 60, 61)), NO_FAULTS]
    stack = trained(digits, "wait", FICKLE, (5, 6), faults=faults)
    assert stack.stalled == [None, None]
    assert np.isfinite(stack.scores()).all()


def test_a_replica_that_has_stopped_early_needs_nobody_any_more(digits: VerticalData) -> None:
    faults = [recorded(*(Outage(name, 60, None) for name in NAMES)), NO_FAULTS]
    assert np.isfinite(trained(digits, "zeros", FICKLE, (5, 6), faults=faults).scores()).all()


@pytest.mark.parametrize("rule", [Sgd(1.0, momentum=0.5), Adam(5e-3)], ids=str)
def test_replicas_with_rates_and_dropout_of_their_own_learn_as_if_all_had_them(
    unequal_digits: VerticalData, rule: Adam | Sgd
) -> None:
    base = replace(SETTINGS, guest_rule=rule, host_rule=rule)
    slow = replace(rule, rate=rule.rate / 4)
    variants = [
        base,
        replace(base, guest_rule=slow, dropout=0.3),
        replace(base, host_rule=slow, dropout=0.5),
        replace(base, guest_rule=slow, host_rule=slow),
    ]
    mixed = trained(unequal_digits, "zeros", variants, MIXED_SEEDS, faults=MIXED)
    for number, variant in enumerate(variants):
        uniform = trained(unequal_digits, "zeros", variant, MIXED_SEEDS, faults=MIXED)
        for ours, theirs in zip(learned(mixed), learned(uniform), strict=True):
            assert (ours[number] - theirs[number]).norm() <= 1e-4 * theirs[number].norm()


def test_replicas_that_differ_in_more_than_rates_and_dropout_are_refused(digits: VerticalData) -> None:
    with pytest.raises(ValueError, match="differ in more than rates and dropout"):
        made(digits, "zeros", [SETTINGS, replace(SETTINGS, batch=32)], (5, 6))
    with pytest.raises(ValueError, match="1 settings for 2 replicas"):
        made(digits, "zeros", [SETTINGS], (5, 6))


# A whole training.


@pytest.mark.parametrize("missing", VARIANTS)
def test_digits_are_learned(digits: VerticalData, missing: Missing) -> None:
    faults = NO_FAULTS if missing == "wait" else Faults((Fault("connection", 0.1, 0.5),))
    assert trained(digits, missing, QUICK, faults=faults).scores().min() > 65


def test_the_parameters_that_were_best_on_held_out_rows_are_taken_back(digits: VerticalData) -> None:
    settings = replace(SETTINGS, validation=0.2, patience=1, epochs=60, host_rule=Sgd(1.5), guest_rule=Sgd(1.5))
    simulation, history = made(digits, "zeros", settings), []
    while not simulation.finished:
        simulation.advance()
        history.append([learner.parameters.clone() for learner in simulation.model.learners])
    best = int(torch.stack(simulation.held_out).argmax())
    assert best < len(history) - 1 < 59
    for found, expected in zip(history[-1], history[best], strict=True):  # the last epoch ends by going back
        assert torch.equal(found, expected)


def test_a_regression_is_learned_in_the_labels_own_unit() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(900, 3)).astype(np.float32) for _ in range(3)]
    target = (1000 + 50 * (tables[0][:, 0] - tables[1][:, 1] + tables[2][:, 0])).astype(np.float32)
    guests = tuple(GuestTable(f"guest-{i + 1}", table[:700], table[700:]) for i, table in enumerate(tables))
    data = VerticalData("sums", guests, target[:700], target[700:], None)
    simulation = trained(data, "zeros", QUICK, (0, 1))
    assert simulation.scores().min() > 0.9
    assert simulation.outputs().shape == (2, 200, 1)
    assert simulation.outputs().mean() == pytest.approx(1000, rel=0.05)


def test_every_round_sends_encodings_forward_and_as_much_back(digits: VerticalData) -> None:
    simulation = trained(digits, "zeros")
    for name, forward, back in zip(NAMES, simulation.flows()[::2], simulation.flows()[1::2], strict=True):
        assert (forward.sender, forward.receivers, forward.leg) == (name, "host-1", "guests")
        assert (back.sender, back.receivers, back.leg) == ("host-1", name, "back")
        assert forward.messages == back.messages == 3 * ROUNDS
        assert forward.megabytes == back.megabytes == pytest.approx(3 * ROUNDS * 64 * 12 * 4 / 1e6)


# What is refused.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch 0: at least 1"),
        ({"epochs": 0}, "epochs 0: at least 1"),
        ({"retries": -1}, "retries -1: 0 or more"),
        ({"dropout": 1.0}, "dropout 1.0: from 0 to below 1"),
        ({"validation": -0.1}, "validation -0.1: from 0 to below 1"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused(
    digits: VerticalData, change: dict[str, float], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        made(digits, "zeros", replace(SETTINGS, **change))


def test_labels_of_one_class_are_refused(digits: VerticalData) -> None:
    with pytest.raises(UserError, match="one class only"):
        made(replace(digits, y_train=np.zeros_like(digits.y_train)), "zeros")


@pytest.mark.parametrize("text", ["delay:2", "reorder:2", "duplicate:2", "corrupt:sign:hosts:guest-1"])
def test_late_and_wrong_messages_are_refused(digits: VerticalData, text: str) -> None:
    faults = Faults.parse(["guest:0.1:0.1", text], lambda path: Outages(path, ()))
    with pytest.raises(UserError, match=f"--faults {text}: only dvfl defines what late or wrong messages do"):
        made(digits, "zeros", faults=faults)
