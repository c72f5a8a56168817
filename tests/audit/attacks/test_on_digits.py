"""Attacks on a real, short training of digits."""

from dataclasses import replace

import pytest
import torch

from dvfl.audit.attacks import collusion, inversion, membership, predictions, probing
from dvfl.audit.readers.label_reader import LEARNED, SPREAD
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.cases import Case, controls
from dvfl.audit.recordings.recorder import recorded
from dvfl.audit.recordings.recording import Recording
from dvfl.data import load
from dvfl.strategies.tuned_preset import tuned

EFFORT = replace(SMALL, known=(20, 200), labels=(1, 10), steps=200)


@pytest.fixture(scope="module")
def attacked() -> tuple[Case, Recording]:
    data = load("digits")
    settings = replace(tuned(data), guest_epochs=15, host_epochs=10, owner_epochs=30, hosts=1)
    case = Case("dvfl", data, settings, (0, 1), torch.device("cpu"))
    return case, recorded(case)[1]


def test_encodings_are_inverted_better_by_more_pairs(attacked: tuple[Case, Recording]) -> None:
    few, many = inversion.strongest(inversion.measure(attacked[1], EFFORT))
    assert (few.known, many.known) == (20, 200)
    assert 0.5 < few.mean < many.mean < 1
    assert many.mean > 0.9


def test_raw_columns_are_read_off_and_random_encoders_hide_more(attacked: tuple[Case, Recording]) -> None:
    case, seen = attacked
    of_raw, of_random = (inversion.measure(control, EFFORT) for control in controls(case, seen).values())
    assert inversion.strongest(of_raw)[1].mean > 0.999
    assert inversion.strongest(of_random)[1].mean < inversion.strongest(inversion.measure(seen, EFFORT))[1].mean


def test_labels_are_in_the_encodings(attacked: tuple[Case, Recording]) -> None:
    guess, *found = probing.measure(attacked[1], EFFORT)
    assert guess.mean == 10
    told = {(one.way, one.known): one.mean for one in found}
    for way in (LEARNED, SPREAD):
        assert 20 < told[way, 1] < told[way, 10] and told[way, 10] > 75


def test_a_short_training_hardly_tells_its_members(attacked: tuple[Case, Recording]) -> None:
    for figure in membership.measure(attacked[1], EFFORT):
        assert 0.4 < figure.mean < 0.65, figure


def test_predictions_tell_less_than_encodings_and_more_than_nothing(attacked: tuple[Case, Recording]) -> None:
    figures = {one.way: one.mean for one in predictions.measure(attacked[1], EFFORT) if one.known == 200}
    assert figures["mean of known rows"] + 0.1 < figures["ridge"] < 0.7


def test_a_neighbours_columns_tell_something_and_take_nothing_away(attacked: tuple[Case, Recording]) -> None:
    figures = {one.way: one.mean for one in collusion.measure(attacked[1], EFFORT) if one.known == 200}
    assert figures["ridge, guest alone"] > 0.1
    assert figures["ridge, together"] > figures["ridge, host alone"] - 0.02
