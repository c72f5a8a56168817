"""Labels by the length and direction of gradients: on a real table, on digits, and where nothing is sent back."""

from dataclasses import replace

import pytest
import torch

from dvfl.audit.attacks.gradient_labels import measure
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.cases import Case
from dvfl.audit.recordings.recorder import recorded
from dvfl.audit.recordings.recording import Recording


def found(seen: Recording) -> dict[tuple[str, int], float]:
    """Mean AUC by way and number of known labels of each class."""
    return {(one.way, one.known): one.mean for one in measure(seen, SMALL)}


def test_a_split_networks_gradients_tell_who_will_not_pay(credit_seen: Recording) -> None:
    areas = found(credit_seen)
    assert set(areas) == {("sign", 1), ("sign", 10), ("norm", 0), ("norm", 10), ("cosine", 1), ("cosine", 10)}
    assert areas["cosine", 1] > 0.9 and areas["cosine", 10] > 0.99
    assert areas["sign", 10] > 0.9 and areas["norm", 0] > 0.8


def test_a_split_networks_gradients_tell_digits(split_seen: Recording) -> None:
    areas = found(split_seen)
    assert areas["cosine", 1] > 0.85 and areas["cosine", 10] > areas["cosine", 1]


@pytest.mark.parametrize("case", ["credit_seen", "split_seen"])
def test_they_tell_nothing_of_labels_that_were_dealt_anew(request: pytest.FixtureRequest, case: str) -> None:
    seen: Recording = request.getfixturevalue(case)
    dealt = seen.y[torch.randperm(len(seen.y), generator=torch.Generator().manual_seed(0))]
    for (way, known), area in found(replace(seen, y=dealt)).items():
        assert area == pytest.approx(0.5, abs=0.1), (way, known)


def test_lengths_that_are_made_alike_tell_less(split_credit: Case, credit_seen: Recording) -> None:
    settings = replace(split_credit.settings, gradient_defence="max_norm")
    defended = found(recorded(split_credit.changed(settings=settings))[1])
    bare = found(credit_seen)
    assert defended["norm", 0] < bare["norm", 0] - 0.15
    assert defended["cosine", 1] < bare["cosine", 1] - 0.15


def test_the_moment_is_the_one_that_tells_known_rows_apart(split_seen: Recording) -> None:
    """The first moment is noise here, so only who looks at the known rows takes the other."""
    noise = torch.Generator().manual_seed(0)
    guests = []
    for guest in split_seen.guests:
        assert guest.gradients is not None
        late = guest.gradients[0]
        guests.append(replace(guest, gradients=torch.stack([torch.randn(late.shape, generator=noise), late])))
    areas = found(replace(split_seen, guests=tuple(guests)))
    assert areas["cosine", 1] == pytest.approx(0.5, abs=0.1)
    assert areas["cosine", 10] > 0.9


def test_without_gradients_there_is_no_channel(dvfl_seen: Recording) -> None:
    measured = measure(dvfl_seen, SMALL)
    assert {one.way for one in measured} == {"sign", "norm", "cosine"}
    assert all(not one.channel and one.values == (0.5, 0.5) for one in measured)
    assert all(one.channel is False for one in measure(dvfl_seen.raw(), SMALL))
