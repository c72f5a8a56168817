"""Noise by the epsilon that it is to keep."""

import pytest

from dvfl.data import load
from dvfl.errors import UserError
from dvfl.release.accounting import DELTA, epsilon_of_release
from dvfl.settings.training import Settings
from dvfl.strategies.bounded_noise import settled_within
from dvfl.strategies.presets import settled

DATA = load("digits")


def test_without_an_epsilon_settings_are_as_said() -> None:
    given = {"clip": 2.0, "noise": 0.5}
    assert settled_within(None, "tuned", DATA, given) == settled("tuned", DATA, given)


@pytest.mark.parametrize("period", [1, 7, 20])
def test_noise_keeps_what_all_epochs_of_pushes_cost_together(period: int) -> None:
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")
    given = {"clip": 2.0, "period": period, "guest_epochs": 20}
    settings = settled_within(3.0, "tuned", DATA, given)
    assert isinstance(settings, Settings) and settings.releases == 20 // period + 1
    assert 2.97 < epsilon_of_release(settings.noise, settings.releases, DELTA) <= 3.0
    assert settings.owner_dropout >= 0.5  # as with noise that is given


def test_without_the_extra_an_epsilon_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.release.accounting.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs the extra: pip install 'dvfl\[privacy\]'"):
        settled_within(2.5, "tuned", DATA, {"clip": 2.0})
