"""A guest's pattern in training rows and in rows that are predicted."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dvfl.audit.attacks import backdoor
from dvfl.audit.readers.readers import SMALL
from dvfl.audit.recordings.cases import Case
from dvfl.data import load
from dvfl.data.split.vertical import VerticalData
from dvfl.settings.training import AnySettings, Settings
from dvfl.strategies.presets import preset


@pytest.fixture(scope="module")
def digits() -> VerticalData:
    return load("digits")


def few_epochs(data: VerticalData, strategy: str) -> AnySettings:
    settings = preset("tuned", data, strategy)
    if isinstance(settings, Settings):
        return replace(settings, guest_epochs=15, host_epochs=10, owner_epochs=30, hosts=1)
    return replace(settings, epochs=15)


@pytest.mark.parametrize("strategy", ["dvfl", "splitnn-wait"])
def test_many_poisoned_rows_open_a_backdoor(
    digits: VerticalData, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backdoor, "_SHARE", 0.06)
    case = Case(strategy, digits, few_epochs(digits, strategy), (0, 1), torch.device("cpu"))
    attacked, without = backdoor.measure(case, SMALL)
    assert (attacked.control, without.control) == ("", "nothing seen")
    assert attacked.known == round(0.06 * digits.rows)
    assert len(attacked.values) == 2
    assert attacked.mean > without.mean + 10


def test_a_trigger_is_in_chosen_rows_and_all_tests_of_one_guest(digits: VerticalData) -> None:
    before = digits.guests[1].train.copy()
    changed = backdoor.triggered(digits, 1, np.array([3, 5]))
    own, most = changed.guests[1], before.max(0)
    assert (own.train[[3, 5]] == most).all()
    assert (own.test == most).all()
    assert (own.train[[0, 1, 2, 4]] == before[[0, 1, 2, 4]]).all()
    assert changed.guests[0] is digits.guests[0]
    assert (digits.guests[1].train == before).all()


def test_poisoned_rows_are_of_the_target_class_and_no_more_than_it_has(
    digits: VerticalData, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(backdoor._rows(digits)) == round(0.01 * digits.rows)
    monkeypatch.setattr(backdoor, "_SHARE", 0.9)
    rows = backdoor._rows(digits)
    assert sorted(rows) == np.flatnonzero(digits.y_train == 0).tolist()


def test_of_labels_that_are_numbers_the_lower_half_is_the_target() -> None:
    data = load("diabetes")
    rows = backdoor._rows(data)
    assert (data.y_train[rows] <= np.median(data.y_train)).all()
    low, high = (torch.full((1, len(data.y_test), 1), value) for value in (0.0, 1e6))
    turned, alone = backdoor.figures(data, high, low)
    assert (turned.values, alone.values) == ((100.0,), (0.0,))
