"""Labels from encodings, by a host that was given none."""

from dataclasses import replace

import pytest
import torch
from made_up import linear, made_up, noise

from dvfl.audit.attacks import probing
from dvfl.audit.readers.label_reader import LEARNED, SPREAD
from dvfl.audit.readers.readers import SMALL

EFFORT = replace(SMALL, labels=(1, 20), hidden=(32,), steps=200)


def test_a_few_labels_of_each_class_tell_the_others() -> None:
    guess, *found = probing.measure(made_up(linear), EFFORT)
    assert (guess.mean, guess.control, guess.known) == (25, "nothing seen", 0)
    told = {(one.way, one.known): one.mean for one in found}
    for way in (LEARNED, SPREAD):
        assert told[way, 20] > 85
        assert told[way, 20] >= told[way, 1] > 35
    assert told[LEARNED, 20] > told[LEARNED, 1]


def test_noise_tells_no_labels() -> None:
    assert all(one.mean < 36 for one in probing.measure(made_up(noise), EFFORT))


def test_a_network_is_chosen_where_classes_are_not_linear() -> None:
    """Four quarters of a plane, two classes: linear maps are at a loss."""
    seen = made_up(columns=(4, 4))
    z = torch.randn(1, seen.rows.count, 4, generator=torch.Generator().manual_seed(0)).sign() * 2
    y = (z[0, :, 0] * z[0, :, 1] > 0).long()
    seen = replace(seen.with_encodings([z, z]), y=y, outputs=seen.outputs[..., :2])
    learned = [one for one in probing.measure(seen, EFFORT) if one.way == LEARNED]
    assert learned[-1].mean > 90


@pytest.mark.parametrize("strategy", ["splitnn-wait", "vafl", "vfb2"])
def test_a_host_that_has_the_labels_is_not_measured(strategy: str) -> None:
    assert probing.measure(made_up(strategy=strategy), EFFORT) == []


def test_fedonce_has_no_host_and_an_onlooker_in_its_place() -> None:
    assert {one.who for one in probing.measure(made_up(strategy="fedonce-zeros"), EFFORT)} == {
        "an onlooker without labels"
    }
