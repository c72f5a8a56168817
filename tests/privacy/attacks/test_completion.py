"""A guest's encoder completed with a head, by looking on and by learning faster than the others."""

from dataclasses import replace

import pytest
import torch

from dvfl.privacy.attacks import completion
from dvfl.privacy.attacks.completion import measure, measure_active
from dvfl.privacy.cases import Case
from dvfl.privacy.measured import Measured
from dvfl.privacy.readers import SMALL
from dvfl.privacy.recording import Recording


def named(measured: list[Measured]) -> dict[tuple[str, int], Measured]:
    return {(one.way, one.known): one for one in measured}


@pytest.mark.parametrize("name", ["split_seen", "dvfl_seen"])
def test_more_labels_tell_more_and_the_best_guest_most(request: pytest.FixtureRequest, name: str) -> None:
    seen: Recording = request.getfixturevalue(name)
    found = named(measure(seen, SMALL))
    assert found["average guest", 10].mean > found["average guest", 1].mean > 15
    for known in (1, 10):
        assert found["best guest", known].mean > found["average guest", known].mean
    assert set(named(measure(seen.raw(), SMALL))) == set(found)


def test_encodings_that_are_the_label_tell_it_and_noise_does_not(split_seen: Recording) -> None:
    noise = torch.Generator().manual_seed(0)
    shape = (2, len(split_seen.y), 10)
    label = torch.nn.functional.one_hot(split_seen.y, 10).float() + torch.randn(shape, generator=noise) / 10
    telling = split_seen.with_encodings([label] + [torch.randn(shape, generator=noise)] * 3)
    found = named(measure(telling, SMALL))
    assert found["best guest", 1].mean > 95 and found["best guest", 10].mean > 95
    assert found["average guest", 10].mean == pytest.approx(25 + 7.5, abs=5)


def test_an_active_guest_trains_with_the_factor_that_its_held_out_labels_choose(
    monkeypatch: pytest.MonkeyPatch, split_digits: Case, split_seen: Recording
) -> None:
    """A factor that stops the guest's own learning is not chosen where there are labels to see it by."""
    monkeypatch.setattr(completion, "FACTORS", (1e-6, 1.0))
    found = named(measure_active(split_digits, SMALL, split_seen))
    still = replace(split_digits.settings, inflated=0, inflation=1e-6)
    frozen = named(measure_active(split_digits.changed(settings=still), replace(SMALL, labels=(10,)), None))
    assert set(found) == {(way, known) for way in ("first guest", "first guest, inflated") for known in (1, 10)}
    assert frozen["first guest", 10].mean < found["first guest, inflated", 10].mean
    assert all(one.channel for one in found.values())


def test_where_nothing_is_sent_back_no_learning_rate_helps(dvfl_digits: Case, dvfl_seen: Recording) -> None:
    found = named(measure_active(dvfl_digits, SMALL, dvfl_seen))
    for known in (1, 10):
        passive, active = found["first guest", known], found["first guest, inflated", known]
        assert passive.channel and not active.channel and passive.values == active.values
