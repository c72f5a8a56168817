"""Presets as the settings of real parties."""

import pytest

from dvfl.orders.preset_settings import settings_for
from dvfl.settings.training import Settings
from dvfl.strategies.presets import for_absence


def test_real_parties_learn_to_do_without_some_of_them() -> None:
    training, head = settings_for("tuned", 0, None)
    ready = for_absence(Settings())
    assert isinstance(ready, Settings) and ready.partial and ready.guest_dropout and ready.host_dropout
    assert (training.partial, training.guest_dropout) == (ready.partial, ready.guest_dropout)
    assert head.host_dropout == ready.host_dropout and head.calibration


@pytest.mark.parametrize("name", ["partial", "guest_dropout", "host_dropout", "calibration"])
def test_the_papers_preset_stays_as_the_paper_has_it(name: str) -> None:
    training, head = settings_for("paper", 0, None)
    assert getattr(training if hasattr(training, name) else head, name) == 0
