"""Presets as the settings of real parties."""

import pytest

from dvfl.cli.preset_settings import settings_for


def test_real_parties_learn_to_do_without_some_of_them() -> None:
    training, head = settings_for("tuned", 0, None)
    assert training.partial and training.guest_dropout and head.host_dropout and head.calibration


@pytest.mark.parametrize("name", ["partial", "guest_dropout", "host_dropout", "calibration"])
def test_the_papers_preset_stays_as_the_paper_has_it(name: str) -> None:
    training, head = settings_for("paper", 0, None)
    assert getattr(training if hasattr(training, name) else head, name) == 0
