"""VFB2: the host reads a sum."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import NO_FAULTS, Fault, Faults
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.parties.numerics.randomness import batches
from dvfl.settings.training import SplitSettings
from dvfl.strategies.split.split_training import EndToEnd, Masks
from dvfl.strategies.split.splitnn import SplitNN
from dvfl.strategies.split.vfb2 import Vfb2

SEED, GUESTS, ROUNDS = 5, 4, 10  # of an epoch: 600 rows in batches of 64
SETTINGS = SplitSettings(epochs=2, guest_rule=Sgd(0.5, momentum=0.5), host_rule=Sgd(0.5, momentum=0.5), validation=0.0)
CRASHES = Faults((Fault("connection", 0.3, 0.5), Fault("guest", 0.1, 0.5), Fault("host", 0.2, 0.5)))
PlainSplits = Callable[[EndToEnd], Any]


class Scripted(Vfb2):
    """VFB2 whose lost messages are written down beforehand."""

    def __init__(self, masks: Masks) -> None:
        super().__init__()
        self.written = masks

    def masks(self, start: int, count: int) -> Masks:
        return {name: mask[start : start + count] for name, mask in self.written.items()}


def trained(data: VerticalData, settings: SplitSettings, seeds: tuple[int, ...], faults: Any = NO_FAULTS) -> EndToEnd:
    simulation = EndToEnd(data, settings, seeds, algorithm=Vfb2(), faults=faults)
    simulation.run()
    return simulation


def follow(plain: Any, masks: Masks) -> None:
    """Trains a plain network whose host reads the sum of what was heard."""
    order = np.concatenate([batches(600, 64, SEED, "owner", epoch) for epoch in range(2)])
    for t, rows in enumerate(torch.from_numpy(order)):
        codes = plain.encode(rows)
        x = sum((code for guest, code in enumerate(codes) if masks["heard"][t, 0, guest]), torch.zeros_like(codes[0]))
        if masks["learn"][t, 0]:
            plain.learn(x, rows, True, masks["told"][t, 0])


@pytest.mark.parametrize(
    ("table", "widths"), [("digits", {}), ("digits", {"w_g": 20}), ("unequal_digits", {"w_g": 48})]
)
@pytest.mark.parametrize("lost", [0.0, 0.4])
def test_it_is_one_network_whose_host_reads_the_sum_of_the_encodings_that_were_heard(
    request: pytest.FixtureRequest, plain_split: PlainSplits, table: str, widths: dict[str, int], lost: float
) -> None:
    luck = np.random.default_rng(0)
    heard = luck.random((2 * ROUNDS, 1, GUESTS)) >= lost
    learn = heard.any(2) & (luck.random((2 * ROUNDS, 1)) >= lost)
    told = heard & learn[..., None] & (luck.random(heard.shape) >= lost)
    masks = {"heard": heard, "told": told, "learn": learn}
    algorithm = Scripted(masks) if lost else Vfb2()
    settings = replace(SETTINGS, **widths)
    simulation = EndToEnd(request.getfixturevalue(table), settings, (SEED,), algorithm=algorithm)
    plain = plain_split(simulation)
    simulation.run()
    follow(plain, masks)
    assert plain.apart() < 5e-3


def test_only_the_first_layer_of_the_head_is_another_than_splitnns(digits: VerticalData) -> None:
    ours, theirs = (EndToEnd(digits, SETTINGS, (0,), algorithm=one).model for one in (Vfb2(), SplitNN("zeros")))
    assert ours.head.widths[0] == 12 and theirs.head.widths[0] == 4 * 12
    assert ours.head.widths[1:] == theirs.head.widths[1:]


def test_encodings_of_unequal_widths_are_refused(unequal_digits: VerticalData) -> None:
    with pytest.raises(UserError, match=r"widths \(12, 6, 12, 18\) cannot be summed; w_g makes them equal"):
        EndToEnd(unequal_digits, SETTINGS, (0,), algorithm=Vfb2())


def test_a_replica_of_a_stack_with_mixed_faults_is_that_seed_and_those_faults_alone(digits: VerticalData) -> None:
    outages = Faults(outages=Outages("record", (Outage("guest-2", 3, 14), Outage("host-1", 15, 16))))
    seeds, faults = (5, 11, 5), (NO_FAULTS, CRASHES, outages)
    settings = replace(SETTINGS, guest_rule=Adam(5e-3), host_rule=Adam(5e-3), dropout=0.2)
    stack = trained(digits, settings, seeds, faults)
    for number, (seed, fault) in enumerate(zip(seeds, faults, strict=True)):
        alone = trained(digits, settings, (seed,), fault)
        for ours, theirs in zip(stack.model.learners, alone.model.learners, strict=True):
            one = ours.parameters.unflatten(0, (3, -1))[number]
            assert (one - theirs.parameters).norm() <= 1e-4 * theirs.parameters.norm()
        assert stack.scores()[number] == alone.scores()[0]


def test_digits_are_learned(digits: VerticalData) -> None:
    settings = replace(SETTINGS, epochs=30, guest_rule=Adam(5e-3), host_rule=Adam(5e-3))
    assert trained(digits, settings, (0, 1), Faults((Fault("connection", 0.1, 0.5),))).scores().min() > 65
