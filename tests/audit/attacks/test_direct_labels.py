"""Labels learned from gradients and few known labels."""

from dataclasses import replace

import torch

from dvfl.audit.attacks.direct_labels import measure
from dvfl.audit.readers.label_reader import LEARNED, SPREAD
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording


def test_gradients_and_ten_labels_of_each_class_tell_nearly_all_others(credit_seen: Recording) -> None:
    found = measure(credit_seen, SMALL)
    assert all(one.channel for one in found)
    assert strongest(found, 1) > 90 and strongest(found, 10) > 97  # a guess has 50


def test_digits_are_told_by_their_gradients(split_seen: Recording) -> None:
    found = {(one.way, one.known): one.mean for one in measure(split_seen, SMALL)}
    for way in (LEARNED, SPREAD):
        assert 40 < found[way, 1] < found[way, 10] and found[way, 10] > 80


def test_labels_that_were_dealt_anew_are_not(split_seen: Recording) -> None:
    dealt = split_seen.y[torch.randperm(len(split_seen.y), generator=torch.Generator().manual_seed(0))]
    assert strongest(measure(replace(split_seen, y=dealt), SMALL), 10) < 25


def test_without_gradients_there_is_a_guess_alone(dvfl_seen: Recording) -> None:
    for one in measure(dvfl_seen, SMALL):
        assert not one.channel
        assert one.values == (10, 10)


def strongest(found: list[Measured], known: int) -> float:
    return max(one.mean for one in found if one.known == known)
