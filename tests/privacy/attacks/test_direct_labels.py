"""Labels learned from gradients and few known labels."""

from dataclasses import replace

import pytest
import torch

from dvfl.privacy.attacks.direct_labels import measure
from dvfl.privacy.readers import SMALL
from dvfl.privacy.recording import Recording


def test_gradients_and_ten_labels_of_each_class_tell_nearly_all_others(credit_seen: Recording) -> None:
    one, ten = measure(credit_seen, SMALL)
    assert (one.known, ten.known) == (1, 10) and one.channel and ten.channel
    assert one.mean > 90 and ten.mean > 97  # the more frequent class has 79


def test_digits_are_told_by_their_gradients(split_seen: Recording) -> None:
    one, ten = measure(split_seen, SMALL)
    assert 40 < one.mean < ten.mean and ten.mean > 80


def test_labels_that_were_dealt_anew_are_not(split_seen: Recording) -> None:
    dealt = split_seen.y[torch.randperm(len(split_seen.y), generator=torch.Generator().manual_seed(0))]
    assert measure(replace(split_seen, y=dealt), SMALL)[1].mean < 25


def test_without_gradients_the_most_frequent_class_is_the_guess(dvfl_seen: Recording) -> None:
    victims = dvfl_seen.y[dvfl_seen.rows.victim]
    most = dvfl_seen.y[: dvfl_seen.rows.trained].bincount().argmax()
    for one in measure(dvfl_seen, SMALL):
        assert not one.channel
        assert one.values == pytest.approx([float((victims == most).double().mean() * 100)] * 2)
