"""A guest's encoder completed with a head, by looking on and by learning faster than the others."""

from dataclasses import replace

import pytest
import torch

from dvfl.audit.attacks.completion import measure, measure_active, variations
from dvfl.audit.readers.label_reader import LEARNED, SPREAD
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.cases import Case
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recorder import recorded
from dvfl.audit.recordings.recording import Recording

WAYS = (LEARNED, SPREAD)


def named(measured: list[Measured]) -> dict[tuple[str, int], Measured]:
    return {(one.way, one.known): one for one in measured}


@pytest.mark.parametrize("name", ["split_seen", "dvfl_seen"])
def test_more_labels_tell_more_and_the_best_guest_most(request: pytest.FixtureRequest, name: str) -> None:
    seen: Recording = request.getfixturevalue(name)
    found = named(measure(seen, SMALL))
    for way in WAYS:
        assert found[f"average guest, {way}", 10].mean > found[f"average guest, {way}", 1].mean > 15
        for known in (1, 10):
            assert found[f"best guest, {way}", known].mean > found[f"average guest, {way}", known].mean
    assert set(named(measure(seen.raw(), SMALL))) == set(found)


def test_encodings_that_are_the_label_tell_it_and_noise_does_not(split_seen: Recording) -> None:
    noise = torch.Generator().manual_seed(0)
    shape = (2, len(split_seen.y), 10)
    label = torch.nn.functional.one_hot(split_seen.y, 10).float() + torch.randn(shape, generator=noise) / 10
    telling = split_seen.with_encodings([label] + [torch.randn(shape, generator=noise)] * 3)
    found = named(measure(telling, SMALL))
    for way in WAYS:
        assert found[f"best guest, {way}", 1].mean > 95 and found[f"best guest, {way}", 10].mean > 95
        assert found[f"average guest, {way}", 10].mean == pytest.approx(25 + 7.5, abs=5)


def test_an_active_guest_trains_with_the_factor_that_its_held_out_labels_choose(
    split_digits: Case, split_seen: Recording
) -> None:
    """A factor that stops the guest's own learning is not chosen where there are labels to see it by."""
    found = named(measure_active(split_digits, replace(SMALL, factors=(1e-6, 1.0)), split_seen))
    still = replace(split_digits.settings, inflated=0, inflation=1e-6)
    frozen = named(measure_active(split_digits.changed(settings=still), replace(SMALL, labels=(10,))))
    kinds = ("first guest", "inflated first guest")
    assert set(found) == {(f"{kind}, {way}", known) for kind in kinds for way in WAYS for known in (1, 10)}
    for way in WAYS:
        assert frozen[f"first guest, {way}", 10].mean < found[f"inflated first guest, {way}", 10].mean
    assert all(one.channel for one in found.values())


def test_what_was_trained_beside_the_case_is_what_is_trained_for_the_attack(split_digits: Case) -> None:
    effort = replace(SMALL, labels=(10,), factors=(3.0,))
    training, seen = recorded(split_digits, variations(split_digits, effort))
    beside = named(measure_active(split_digits, effort, seen, training))
    alone = named(measure_active(split_digits, effort))
    assert set(beside) == set(alone)
    for key, one in beside.items():
        assert one.mean == pytest.approx(alone[key].mean, abs=3)


def test_where_nothing_is_sent_back_no_learning_rate_helps(dvfl_digits: Case, dvfl_seen: Recording) -> None:
    found = named(measure_active(dvfl_digits, SMALL, dvfl_seen))
    for way in WAYS:
        for known in (1, 10):
            passive, active = found[f"first guest, {way}", known], found[f"inflated first guest, {way}", known]
            assert passive.channel and not active.channel and passive.values == active.values
