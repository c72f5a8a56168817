"""Replicas of one stack that train on rows of their own."""

from dataclasses import replace

import numpy as np
import pytest

from dvfl.data import load
from dvfl.data.outages import read_outages
from dvfl.data.split.vertical import VerticalData, intersection, limited_intersection, misaligned
from dvfl.errors import UserError
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import AnySettings, FedVSSettings, Settings, SplitSettings
from dvfl.simulation.replica_data import ReplicaData
from dvfl.strategies import STRATEGIES

QUICK = Settings(hosts=2, guest_epochs=2, host_epochs=3, owner_epochs=4, batch=32, standardise=True)
SPLIT = SplitSettings(epochs=6, batch=32, guest_rule=Adam(3e-3), host_rule=Adam(3e-3))
SETTINGS: dict[str, AnySettings] = {"dvfl": QUICK, "fedonce-zeros": QUICK, "splitnn-zeros": SPLIT, "vafl": SPLIT}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("faults", [(), ("connection:0.3:0.5",)])
def test_a_replica_with_rows_of_its_own_is_that_data_trained_alone(
    unequal_digits: VerticalData, name: str, faults: tuple[str, ...]
) -> None:
    each = [limited_intersection(unequal_digits, 200, seed) for seed in (0, 1)]
    order = np.random.default_rng(1).permutation(len(unequal_digits.y_test))
    shuffled = tuple(replace(guest, test=guest.test[order]) for guest in each[1].guests)
    each[1] = replace(each[1], guests=shuffled, y_test=each[1].y_test[order])
    luck = Faults.parse(faults, read_outages)
    stack = STRATEGIES.find(name)(each, SETTINGS[name], (0, 1), faults=luck)
    stack.run()
    for seed in (0, 1):
        alone = STRATEGIES.find(name)(each[seed], SETTINGS[name], (seed,), faults=luck)
        alone.run()
        assert np.allclose(stack.outputs()[seed], alone.outputs()[0], atol=1e-3)
        assert stack.scores()[seed] == pytest.approx(alone.scores()[0], abs=0.3)


def test_split_networks_train_on_the_intersection_alone(digits: VerticalData) -> None:
    data = limited_intersection(digits, 100, 0)
    for name, settings in (("splitnn-wait", SPLIT), ("fedvs", FedVSSettings(epochs=2))):
        limited, common = (STRATEGIES.find(name)(rows, settings, (0,)) for rows in (data, intersection(data)))
        limited.run()
        common.run()
        assert (limited.outputs() == common.outputs()).all()


def test_guests_learn_from_rows_outside_the_intersection(digits: VerticalData) -> None:
    data = limited_intersection(digits, 60, 0)
    more = STRATEGIES.find("dvfl")(data, QUICK, (0,))
    assert more.data.rows == 60 + 540 // 4
    less = STRATEGIES.find("dvfl")(intersection(data), QUICK, (0,))
    more.run()
    less.run()
    assert more.history().guests[-1].mean() < less.history().guests[-1].mean()


def test_misaligned_guests_learn_as_well_and_the_owner_still_has_its_labels_right(digits: VerticalData) -> None:
    settings = replace(QUICK, guest_epochs=10, host_epochs=20, owner_epochs=60, validation=0.0)
    aligned, apart = (STRATEGIES.find("dvfl")(data, settings, (0,)) for data in (digits, misaligned(digits, 0)))
    aligned.run()
    apart.run()
    assert aligned.scores()[0] > 75
    assert apart.scores()[0] > aligned.scores()[0] - 8


def test_row_registers_refuse_rows_that_are_not_the_same_entity(digits: VerticalData) -> None:
    with pytest.raises(UserError, match=r"registers row: .* batch is right"):
        STRATEGIES.find("dvfl")(misaligned(digits, 0), replace(QUICK, registers="row"), (0,))


def test_data_of_different_shapes_cannot_share_a_stack(digits: VerticalData, unequal_digits: VerticalData) -> None:
    with pytest.raises(ValueError, match="one shape"):
        ReplicaData([digits, unequal_digits], 2)
    with pytest.raises(ValueError, match="data for 1 replicas; 2 is right"):
        ReplicaData([digits], 2)


@pytest.mark.parametrize("name", ["dvfl", "splitnn-zeros"])
def test_labels_that_are_numbers_can_go_with_tables_of_each_replica_but_not_with_others(name: str) -> None:
    data = load("diabetes")
    first = data.guests[0]
    other = replace(data, guests=(replace(first, train=first.train * 0.5), *data.guests[1:]))
    stack = STRATEGIES.find(name)([data, other], SETTINGS[name], (0, 0))
    stack.run()
    for place, own in enumerate((data, other)):
        alone = STRATEGIES.find(name)(own, SETTINGS[name], (0,))
        alone.run()
        assert np.allclose(stack.outputs()[place], alone.outputs()[0], rtol=1e-3, atol=0.1)
        assert stack.scores()[place] == pytest.approx(alone.scores()[0], abs=1e-3)
    with pytest.raises(ValueError, match="labels of their own need classes"):
        ReplicaData([data, replace(other, y_train=data.y_train + 1)], 2)
