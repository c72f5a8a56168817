"""Columns from predictions."""

from dataclasses import replace

import pytest
import torch
from made_up import made_up

from dvfl.audit.attacks import predictions
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.recording import Recording

EFFORT = replace(SMALL, known=(10, 200), hidden=(32,), steps=200)


def by_way(seen: Recording) -> dict[str, float]:
    return {one.way: one.mean for one in predictions.measure(seen, EFFORT) if one.known == 200}


def test_predictions_tell_of_columns_what_the_class_does() -> None:
    seen = made_up()
    figures = by_way(replace(seen, outputs=6 * torch.eye(seen.classes)[seen.y][None]))
    assert figures["ridge"] > figures["mean of known rows"] + 0.2
    assert figures["network"] > figures["mean of known rows"] + 0.2


def test_predictions_of_nothing_tell_nothing() -> None:
    seen = made_up()
    figures = by_way(replace(seen, outputs=torch.randn(seen.outputs.shape, generator=torch.Generator().manual_seed(1))))
    assert max(figures.values()) < 0.02


def test_the_control_is_marked_and_sees_nothing() -> None:
    figures = [one for one in predictions.measure(made_up(), replace(EFFORT, steps=1)) if one.control]
    assert [(one.control, one.saw, one.known) for one in figures] == [("nothing seen", "nothing", n) for n in (10, 200)]
    assert figures[1].mean == pytest.approx(0, abs=0.05)


def test_scores_that_overflow_as_probabilities_are_read_all_the_same() -> None:
    seen = made_up()
    figures = predictions.measure(replace(seen, outputs=seen.outputs * 1e4), EFFORT)
    assert all(-1 < one.mean < 1 for one in figures)
