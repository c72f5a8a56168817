"""The settings' plain form, and what follows from them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.settings.training import Settings

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


@pytest.mark.parametrize(
    ("period", "communicated", "replayed"), [(1, 20, 20), (5, 4, 36), (10, 2, 38), (15, 1, 39), (20, 1, 39)]
)
def test_the_papers_periods_leave_the_rest_to_replay(period: int, communicated: int, replayed: int) -> None:
    s = replace(Settings(), period=period)
    assert (s.communicated, s.replayed) == (communicated, replayed)
