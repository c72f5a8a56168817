"""When a replica stops, and which parameters it goes back to."""

import torch
from torch import Tensor

from dvfl.parties.early_stopping import EarlyStopping
from dvfl.parties.numerics.learner import Learner, Sgd


def noted(scores: list[list[float]], patience: int = 1) -> tuple[EarlyStopping, Learner, list[list[bool]]]:
    """Two replicas of two parties whose parameters are the number of epochs, and who was going after each epoch."""
    learner = Learner(torch.zeros(4, 3), Sgd(0.1))
    stopping, going = EarlyStopping([learner], torch.tensor([0.1, 0.1]), patience), []
    for score in scores:
        learner.parameters.add_(1)
        stopping.note(torch.tensor(score))
        going.append(stopping.going.tolist())
    return stopping, learner, going


def parameters(learner: Learner) -> Tensor:
    return learner.parameters[:, 0]


def test_a_replica_stops_once_it_has_not_improved_for_longer_than_its_patience() -> None:
    stopping, learner, going = noted([[0.5, 0.5], [0.4, 0.6], [0.4, 0.7], [0.9, 0.8]])
    assert going == [[True, True], [True, True], [False, True], [False, True]]
    stopping.finish()
    assert parameters(learner).tolist() == [1, 1, 4, 4]


def test_patience_begins_when_a_replica_is_better_than_a_constant_output() -> None:
    _, _, going = noted([[0.1, 0.05], [0.1, 0.05], [0.1, 0.05], [0.3, 0.05], [0.2, 0.05], [0.2, 0.05]])
    assert going == [[True, True]] * 5 + [[False, True]]


def test_a_score_that_is_no_number_does_not_stop_a_replica_nor_counts_as_its_best() -> None:
    stopping, learner, going = noted([[torch.nan, 0.5], [torch.nan, 0.6], [0.4, 0.7]], patience=0)
    assert going == [[True, True]] * 3
    stopping.finish()
    assert parameters(learner).tolist() == [3, 3, 3, 3]
