"""Federations that are trained once for all attacks, on real data: a table where it is there, digits anywhere."""

import pytest
import torch

from dvfl.audit.recordings.cases import Case
from dvfl.audit.recordings.recorder import recorded
from dvfl.audit.recordings.recording import Recording
from dvfl.data import load
from dvfl.data.split.vertical import VerticalData, fewer_rows
from dvfl.errors import UserError
from dvfl.parties.numerics.learner import Adam
from dvfl.settings.training import Settings, SplitSettings
from dvfl.strategies.presets import preset

CPU, SEEDS, RULE = torch.device("cpu"), (0, 1), Adam(5e-3)


@pytest.fixture(scope="session")
def few_digits() -> VerticalData:
    return fewer_rows(load("digits"), 600)


@pytest.fixture(scope="session")
def split_digits(few_digits: VerticalData) -> Case:
    settings = SplitSettings(epochs=10, guest_rule=RULE, host_rule=RULE, validation=0.0)
    return Case("splitnn-wait", few_digits, settings, SEEDS, CPU)


@pytest.fixture(scope="session")
def dvfl_digits(few_digits: VerticalData) -> Case:
    settings = Settings(hosts=1, guest_epochs=5, host_epochs=5, owner_epochs=5, validation=0.0)
    return Case("dvfl", few_digits, settings, SEEDS, CPU)


@pytest.fixture(scope="session")
def split_seen(split_digits: Case) -> Recording:
    return recorded(split_digits)[1]


@pytest.fixture(scope="session")
def dvfl_seen(dvfl_digits: Case) -> Recording:
    return recorded(dvfl_digits)[1]


@pytest.fixture(scope="session")
def split_credit() -> Case:
    """The paper's Credit Card: two classes, one in five rows of the rarer."""
    try:
        data = fewer_rows(load("credit_card"), 2000)
    except UserError as missing:
        pytest.skip(str(missing))
    return Case("splitnn-wait", data, preset("tuned", data, "splitnn-wait"), SEEDS, CPU)


@pytest.fixture(scope="session")
def credit_seen(split_credit: Case) -> Recording:
    return recorded(split_credit)[1]
