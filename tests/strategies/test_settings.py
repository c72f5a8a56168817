"""Presets and the settings' plain form."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.parties.learner import Adam, Sgd
from dvfl.strategies.settings import Settings, preset

RULES = st.one_of(
    st.builds(Adam, st.floats(1e-6, 1), weight_decay=st.floats(0, 1)),
    st.builds(Sgd, st.floats(1e-6, 1), momentum=st.floats(0, 0.99)),
)


@given(RULES, RULES, RULES, st.none() | st.integers(1, 10**9))
def test_settings_are_read_back_from_their_plain_form(
    guest: Adam | Sgd, host: Adam | Sgd, owner: Adam | Sgd, budget: int | None
) -> None:
    settings = Settings(guest_rule=guest, host_rule=host, owner_rule=owner, history_bytes=budget)
    assert Settings.from_dict(settings.as_dict()) == settings


def test_the_papers_preset_for_mnist_is_its_appendix() -> None:
    s = preset("paper", sizes_rule="mnist", rows=60_000)
    assert s.guest_rule == s.host_rule == Adam(2e-3, weight_decay=1e-5, beta1=0.9, beta2=0.999)
    assert s.owner_rule == Sgd(8e-2)
    assert (s.batch, s.guest_epochs, s.host_epochs, s.owner_epochs, s.hosts) == (64, 20, 40, 60, 4)
    assert s.validation > 0  # early stopping
    assert not s.standardise
    assert s.owner_dropout == s.guest_dropout == s.host_dropout == 0


@pytest.mark.parametrize(
    ("rule", "guest", "host", "owner"),
    [
        ("handwritten", 2e-3, 1e-3, 3e-3),
        ("caltech7", 5e-4, 1e-2, 3e-5),
        ("parkinsons", 5e-3, 4e-3, 5e-4),
        ("credit_card", 1e-3, 1e-3, 1e-3),
    ],
)
def test_the_papers_preset_for_tables_has_its_learning_rates(
    rule: str, guest: float, host: float, owner: float
) -> None:
    s = preset("paper", sizes_rule=rule, rows=1000)
    assert (s.guest_rule.rate, s.host_rule.rate, s.owner_rule.rate) == (guest, host, owner)
    assert isinstance(s.guest_rule, Adam)
    assert isinstance(s.host_rule, Adam)
    assert isinstance(s.owner_rule, Sgd)
    assert s.owner_rule.momentum == 0.5
    assert s.hosts == 1


@pytest.mark.parametrize("rows", [50, 1437, 60_000])
def test_the_tuned_preset_never_trains_less_than_the_paper(rows: int) -> None:
    ours, theirs = preset("tuned", sizes_rule="table", rows=rows), preset("paper", sizes_rule="table", rows=rows)
    assert ours.guest_epochs >= theirs.guest_epochs
    assert ours.host_epochs >= theirs.host_epochs
    assert ours.owner_epochs >= theirs.owner_epochs


def test_an_unknown_preset_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'tuned'"):
        preset("tune", sizes_rule="mnist", rows=1)


@pytest.mark.parametrize(
    ("period", "communicated", "replayed"), [(1, 20, 20), (5, 4, 36), (10, 2, 38), (15, 1, 39), (20, 1, 39)]
)
def test_the_papers_periods_leave_the_rest_to_replay(period: int, communicated: int, replayed: int) -> None:
    s = replace(Settings(), period=period)
    assert (s.communicated, s.replayed) == (communicated, replayed)
