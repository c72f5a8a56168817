"""The owner's phase: early stopping on held-out training rows, standardisation, regression targets."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.settings.training import Settings
from dvfl.simulation.stack import Shape, Stack
from dvfl.strategies.decoupled.owner_phase import OwnerPhase

SEEDS = (0, 1, 2)
ROWS, CPU = 120, torch.device("cpu")
BASE = Settings(hosts=0, batch=16, owner_epochs=60, owner_rule=Sgd(0.3), validation=0.25, patience=4)


def stack(settings: Settings, classes: int = 3) -> Stack:
    return Stack(Shape((4, 4), (False, False), "table", classes), settings, SEEDS, CPU)


def encodings(parties: Stack, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, ROWS, sum(parties.owner_widths), generator=generator).repeat(len(SEEDS), 1, 1)


def noise() -> np.ndarray:
    """Labels of which half follow the encodings and half no rule, so that owners soon learn by heart what does not help
    on held-out rows."""
    random = np.random.default_rng(0)
    rule = encodings(stack(BASE))[0, :, :3].argmax(-1).numpy()
    return np.where(random.random(ROWS) < 0.5, rule, random.integers(3, size=ROWS))


def opened(parties: Stack, joint: Tensor, labels: np.ndarray, variants: Sequence[Settings] | None = None) -> OwnerPhase:
    """The phase of owners with the stack's settings, or each with its own."""
    return OwnerPhase(parties, joint, labels, variants or [parties.settings] * len(SEEDS))


def run(phase: OwnerPhase) -> list[Tensor]:
    """The parameters after every epoch."""
    history = []
    while not phase.finished:
        phase.advance()
        history.append(phase.stack.owner.learner.parameters.clone())
    return history


def held_out(seed: int, settings: Settings) -> np.ndarray:
    return numpy_generator(seed, "held-out").permutation(ROWS)[: round(ROWS * settings.validation)]


def test_training_stops_when_held_out_rows_no_longer_improve() -> None:
    parties = stack(BASE)
    phase = opened(parties, encodings(parties), noise())
    run(phase)
    assert phase.epoch < BASE.owner_epochs
    scores = torch.stack(phase.held_out)  # (epochs, replicas)
    for replica in range(len(SEEDS)):
        best = int(scores[:, replica].argmax())
        assert scores[best + 1 : best + 2 + BASE.patience, replica].max() <= scores[best, replica]
    assert phase.epoch == max(int(scores[:, replica].argmax()) for replica in range(len(SEEDS))) + BASE.patience + 2


def test_the_best_parameters_are_taken_back() -> None:
    parties = stack(BASE)
    phase = opened(parties, encodings(parties), noise())
    history = run(phase)
    phase.finish()
    scores = torch.stack(phase.held_out)
    for replica in range(len(SEEDS)):
        best = history[int(scores[:, replica].argmax())][replica]
        assert torch.equal(parties.owner.learner.parameters[replica], best)


def test_a_replica_that_has_stopped_does_not_move_while_others_go_on() -> None:
    parties = stack(BASE)
    phase = opened(parties, encodings(parties), noise())
    history = run(phase)
    stops = [int(torch.stack(phase.held_out)[:, replica].argmax()) + BASE.patience + 1 for replica in range(len(SEEDS))]
    assert len(set(stops)) > 1
    for replica, stop in enumerate(stops):
        assert all(torch.equal(later[replica], history[stop][replica]) for later in history[stop:])
        assert not torch.equal(history[stop - 1][replica], history[stop][replica])


def test_the_held_out_score_is_that_of_rows_that_were_not_trained_on() -> None:
    parties = stack(BASE)
    joint, labels = encodings(parties), noise()
    phase = opened(parties, joint.clone(), labels)
    phase.advance()
    outputs = parties.predict(joint)
    for replica, seed in enumerate(SEEDS):
        rows = held_out(seed, BASE)
        right = (outputs[replica, rows].argmax(-1).numpy() == labels[rows]).mean()
        assert phase.held_out[0][replica] == pytest.approx(right)


def test_labels_of_held_out_rows_are_never_learned_from() -> None:
    results = []
    for change in (0, 1):
        parties = stack(replace(BASE, patience=1000, owner_epochs=3))
        labels = noise()
        rows = held_out(SEEDS[0], BASE)
        labels[rows] = (labels[rows] + change) % 3
        results.append(run(opened(parties, encodings(parties), labels))[-1][0])
    assert torch.equal(*results)


def test_without_held_out_rows_all_epochs_are_run_and_the_last_counts() -> None:
    parties = stack(replace(BASE, validation=0.0, owner_epochs=7))
    phase = opened(parties, encodings(parties), noise())
    history = run(phase)
    phase.finish()
    assert len(history) == 7
    assert phase.held_out == []
    assert torch.equal(parties.owner.learner.parameters, history[-1])


def test_encodings_are_standardised_by_the_rows_that_are_trained_on() -> None:
    settings = replace(BASE, standardise=True)
    parties = stack(settings)
    joint = 5 + 3 * encodings(parties)
    joint[:, held_out(SEEDS[0], settings)] += 1000  # must not show in the first replica
    joint[:, :, 0] = 2.5  # a dimension that never varies
    opened(parties, joint.clone(), noise())
    rows = np.setdiff1d(np.arange(ROWS), held_out(SEEDS[0], settings))
    torch.testing.assert_close(parties.centre[0, 0], joint[0, rows].mean(0))
    expected = joint[0, rows].std(0, correction=0)
    expected[0] = 1
    torch.testing.assert_close(parties.spread[0, 0], expected)


def test_predictions_of_a_regression_come_in_the_labels_own_unit() -> None:
    parties = stack(replace(BASE, owner_rule=Sgd(0.05), owner_epochs=40, validation=0.0), classes=0)
    joint = encodings(parties)
    target = (1e4 + 500 * joint[0, :, 0]).numpy()
    run(opened(parties, joint.clone(), target))
    errors = (parties.predict(joint)[..., 0] - torch.from_numpy(target)).square().mean(1)
    assert (errors < 0.1 * target.var()).all()


def test_a_batch_larger_than_the_rows_left_to_train_on_is_cut() -> None:
    parties = stack(replace(BASE, batch=ROWS, owner_epochs=1))
    phase = opened(parties, encodings(parties), noise())
    phase.advance()
    assert (phase.rows.batch, phase.rows.iterations) == (90, 1)


def test_a_validation_part_that_would_leave_no_row_still_trains() -> None:
    parties = stack(replace(BASE, validation=0.999, owner_epochs=1))
    phase = opened(parties, encodings(parties), noise())
    phase.advance()
    assert phase.losses[0].isfinite().all()


@pytest.mark.parametrize("rule", [Sgd(0.3, momentum=0.5), Adam(0.01)], ids=str)
def test_an_owner_with_a_rate_and_dropout_of_its_own_learns_as_if_all_had_them(rule: Adam | Sgd) -> None:
    changes = [(0.3, 0.0), (0.1, 0.5), (0.3, 0.2)]
    variants = [
        replace(BASE, owner_rule=replace(rule, rate=rule.rate * share), owner_dropout=dropout, owner_epochs=3)
        for share, dropout in changes
    ]
    parties = stack(variants[0])
    mixed = run(opened(parties, encodings(parties), noise(), variants))[-1]
    for replica, variant in enumerate(variants):
        parties = stack(variant)
        uniform = run(opened(parties, encodings(parties), noise()))[-1]
        torch.testing.assert_close(mixed[replica], uniform[replica], rtol=1e-4, atol=1e-6)
        assert not any(torch.equal(mixed[other], uniform[other]) for other in {0, 1, 2} - {replica})
