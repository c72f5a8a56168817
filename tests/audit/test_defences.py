"""Defences by name."""

from dataclasses import replace

import pytest
import torch
from made_up import made_up

from dvfl.audit.defences import ALL, DEFENCES, NONE, chosen, usual_length
from dvfl.data import load
from dvfl.errors import UserError
from dvfl.settings.training import Settings, SplitSettings
from dvfl.strategies.presets import preset, shielded

DATA = load("digits")

OF_ENCODINGS = {name: defence for name, defence in DEFENCES.items() if defence.of == "encodings"}
OF_GRADIENTS = {name: defence for name, defence in DEFENCES.items() if defence.of == "gradients"}


def test_every_defence_of_encodings_changes_settings_that_a_training_takes() -> None:
    from dvfl.strategies.decoupled.dvfl import Dvfl

    settings, sent = preset("tuned", DATA), made_up(columns=(16, 16, 16, 16))
    for name, defence in OF_ENCODINGS.items():
        changed = defence.change(settings, sent)
        assert isinstance(changed, Settings)
        assert (changed != settings) == (defence.epsilon is None), name  # DP-SGD brings encoders of its own
        Dvfl(DATA, changed, [0])


def test_guests_that_learn_against_a_decoder_send_nothing_from_before_they_have() -> None:
    changed = OF_ENCODINGS["adversary"].change(preset("tuned", DATA), made_up())
    assert isinstance(changed, Settings)
    assert changed.adversary > 0 and changed.communicated == 1


def test_every_defence_of_gradients_changes_settings_that_a_training_takes() -> None:
    from dvfl.strategies import STRATEGIES

    settings = preset("tuned", DATA, "splitnn-wait")
    for defence in OF_GRADIENTS.values():
        changed = defence.change(settings, made_up())
        assert isinstance(changed, SplitSettings) and changed != settings
        STRATEGIES.find("splitnn-wait")(DATA, changed, [0])


def test_all_none_and_names_choose_among_a_strategys_own() -> None:
    assert chosen([ALL], "dvfl").keys() == OF_ENCODINGS.keys()
    assert chosen([ALL], "splitnn-zeros").keys() == OF_GRADIENTS.keys()
    assert OF_ENCODINGS.keys() - chosen([ALL], "fedonce").keys() == {"once", "noise-0.4-often"}
    assert chosen([NONE], "dvfl") == {}
    assert list(chosen(["once", "gradient-sign"], "dvfl")) == ["once"]
    with pytest.raises(UserError, match="did you mean 'once'"):
        chosen(["onc"], "dvfl")


def test_noise_is_measured_by_the_usual_length_of_what_was_sent() -> None:
    seen = made_up()
    longer = seen.with_encodings([guest.z * 3 for guest in seen.guests])
    assert usual_length(longer) == pytest.approx(3 * usual_length(seen))


@pytest.mark.parametrize("width", [8, 80])
def test_a_shields_noise_is_of_the_same_strength_whatever_the_width(width: int) -> None:
    settings = preset("tuned", DATA)
    assert isinstance(settings, Settings)
    made = shielded(settings, 0.5, [width])
    assert made.clip is not None and made.clip**2 == pytest.approx(width, rel=1e-3)
    assert made.noise * made.clip == pytest.approx(0.5, rel=1e-3)  # of a direction's own deviation, which is 1
    assert made.releases == 1 and made.owner_dropout >= 0.5


@pytest.mark.parametrize("strength", [0.0, -1.0, float("nan"), float("inf")])
def test_a_strength_that_is_none_is_refused(strength: float) -> None:
    settings = preset("tuned", DATA)
    assert isinstance(settings, Settings)
    with pytest.raises(UserError, match="shield"):
        shielded(replace(settings), strength, [8])


def test_lengths_are_of_trained_rows_alone() -> None:
    seen = made_up()
    z = [guest.z.clone() for guest in seen.guests]
    for own in z:
        own[:, seen.rows.test] = 1e6
    assert usual_length(seen.with_encodings(z)) == usual_length(seen)
    assert torch.isfinite(torch.tensor(usual_length(seen)))
