"""Figures of attacks: against scikit-learn's, and there and back."""

import json

import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score

from dvfl.audit.recordings.measured import Measured, auc, balanced_accuracy, r2


def test_auc_is_that_of_scikit_learn_with_ties() -> None:
    draw = torch.Generator().manual_seed(0)
    scores = torch.randint(6, (3, 200), generator=draw).float()
    marked = torch.rand(3, 200, generator=draw) < 0.3
    expected = [roc_auc_score(own, score) for own, score in zip(marked, scores, strict=True)]
    assert auc(marked, scores).tolist() == pytest.approx(expected)


def test_r2_weighs_columns_by_their_variance() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(2, 50, 4, generator=draw) * torch.tensor([1.0, 2.0, 3.0, 4.0])
    guess = x + torch.randn(2, 50, 4, generator=draw)
    expected = [r2_score(a, b, multioutput="variance_weighted") for a, b in zip(x, guess, strict=True)]
    assert r2(x, guess).tolist() == pytest.approx(expected, abs=1e-5)


def test_balanced_accuracy_is_that_of_scikit_learn_in_percent() -> None:
    draw = torch.Generator().manual_seed(0)
    y = (torch.rand(3, 200, generator=draw) < 0.2).long() + (torch.rand(3, 200, generator=draw) < 0.1).long()
    scores = torch.randn(3, 200, 4, generator=draw) + torch.nn.functional.one_hot(y, 4)  # nobody is of the last class
    expected = [
        100 * balanced_accuracy_score(own, guess, adjusted=False)
        for own, guess in zip(y, scores[..., :3].argmax(2), strict=True)
    ]
    without_last = torch.cat([scores[..., :3], torch.full((3, 200, 1), -torch.inf)], 2)
    assert balanced_accuracy(y, without_last).tolist() == pytest.approx(expected)


def test_whoever_names_one_class_for_all_is_right_of_one_class_in_so_many() -> None:
    y = torch.tensor([[0] * 90 + [1] * 10])
    assert balanced_accuracy(y, torch.tensor([1.0, 0.0]).expand(1, 100, 2)).tolist() == [50]


def test_what_was_measured_comes_back_from_plain_data() -> None:
    one = Measured("inversion", "ridge", "a host", "encodings", 50, "columns", "columns", "R2", (0.5, 0.25))
    assert Measured.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    assert one.mean == 0.375
