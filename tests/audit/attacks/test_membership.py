"""Who was trained on, from outputs that are surer of some rows."""

from dataclasses import replace

import torch
from made_up import made_up

from dvfl.audit.attacks import membership
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.recording import Recording

EFFORT = replace(SMALL, hidden=(32,), steps=200)


def by_way(seen: Recording) -> dict[str, float]:
    return {one.way: one.mean for one in membership.measure(seen, EFFORT)}


def test_rows_that_were_learned_by_heart_are_told_from_others() -> None:
    figures = by_way(made_up(sure=8.0))
    assert figures["confidence"] > 0.8
    assert figures["network"] > 0.8


def test_a_small_loss_tells_members_where_confidence_does_not() -> None:
    """Outputs as sure of a wrong class for other rows as of the right one for trained rows."""
    seen = made_up()
    outputs = torch.randn(seen.outputs.shape, generator=torch.Generator().manual_seed(1))
    wrong = (seen.y + 1) % seen.classes
    for row in range(seen.rows.count):
        outputs[0, row, seen.y[row] if row < seen.rows.trained else wrong[row]] += 5
    figures = by_way(replace(seen, outputs=outputs))
    assert figures["loss"] > 0.95
    assert figures["network"] > 0.95
    assert 0.4 < figures["confidence"] < 0.6


def test_rows_that_look_alike_are_not_told_apart() -> None:
    for value in by_way(made_up()).values():
        assert 0.4 < value < 0.6


def test_each_seed_has_its_own_figure() -> None:
    seen = made_up(seeds=(0, 1))
    outputs = seen.outputs.clone()
    outputs[1, : seen.rows.trained] *= 8
    figures = membership.measure(replace(seen, outputs=outputs), EFFORT)
    assert figures[0].values[0] < 0.6
    assert figures[0].values[1] > 0.8


def test_predicted_numbers_that_are_nearer_to_the_labels_of_trained_rows_tell_them_from_others() -> None:
    seen, draw = made_up(), torch.Generator().manual_seed(2)
    numbers = torch.randn(seen.rows.count, generator=draw)
    errors = torch.randn(1, seen.rows.count, generator=draw)
    for factor, least, most in ((0.1, 0.9, 1.0), (1.0, 0.4, 0.6)):
        off = errors.clone()
        off[:, : seen.rows.trained] *= factor
        figures = by_way(replace(seen, numbers=numbers, outputs=(numbers + off)[..., None]))
        assert sorted(figures) == ["loss", "network"]  # a number does not say how sure anybody is of it
        assert all(least < value < most for value in figures.values())
