"""Up/down chains: their rates, their keys, and how they are written on a command line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.parties.faults import Chains, Fault

RATES = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])
FAULTS = st.builds(Fault, st.sampled_from(["connection", "guest", "host"]), RATES, RATES)


@given(FAULTS)
def test_a_fault_is_read_back_from_its_text(fault: Fault) -> None:
    assert Fault.parse(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("guest", "KIND:R_d:R_u is right"),
        ("guest:0.1", "KIND:R_d:R_u is right"),
        ("guest:0.1:0.2:0.3", "KIND:R_d:R_u is right"),
        ("gest:0.1:0.2", "did you mean 'guest'"),
        ("power:0.1:0.2", "known: connection, guest, host"),
        ("host:often:0.2", "numbers from 0 to 1"),
        ("host:1.5:0.2", "between 0 and 1"),
        ("host:0.5:-0.2", "between 0 and 1"),
        ("host:nan:0.2", "between 0 and 1"),
    ],
)
def test_what_is_no_fault_is_refused_with_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        Fault.parse(text)
    assert text in str(error.value)


@pytest.mark.parametrize(("down", "up"), [(0.3, 0.1), (0.1, 0.5), (0.5, 1.0)])
def test_the_share_of_time_alive_is_that_of_the_chain(down: float, up: float) -> None:
    states = Chains(Fault("guest", down, up), range(20), [f"guest-{i}" for i in range(10)]).draw(500)
    assert states[100:].mean() == pytest.approx(up / (up + down), abs=0.01)


def test_live_ones_die_and_dead_ones_rejoin_at_their_rates() -> None:
    states = Chains(Fault("host", 0.3, 0.1), range(20), [f"host-{i}" for i in range(10)]).draw(500)
    before, after = states[:-1], states[1:]
    assert (~after[before]).mean() == pytest.approx(0.3, abs=0.01)
    assert after[~before].mean() == pytest.approx(0.1, abs=0.01)


def test_all_start_alive_and_the_first_draw_may_already_kill() -> None:
    states = Chains(Fault("host", 0.3, 0.0), range(50), [f"host-{i}" for i in range(40)]).draw(1)
    assert (~states).mean() == pytest.approx(0.3, abs=0.04)


def test_without_a_rate_of_dying_nobody_ever_dies() -> None:
    assert Chains(Fault("guest", 0.0, 0.0), range(3), ["a", "b"]).draw(1000).all()


def test_at_a_rate_of_one_all_are_dead_from_the_first_request_on() -> None:
    assert not Chains(Fault("guest", 1.0, 0.0), range(3), ["a", "b"]).draw(1000).any()


@given(FAULTS, st.lists(st.integers(1, 10), min_size=1, max_size=5), st.integers(0, 2**31))
def test_it_does_not_matter_how_many_requests_are_drawn_at_once(fault: Fault, parts: list[int], seed: int) -> None:
    whole = Chains(fault, [seed], ["a", "b"])
    pieces = Chains(fault, [seed], ["a", "b"])
    np.testing.assert_array_equal(whole.draw(sum(parts)), np.concatenate([pieces.draw(part) for part in parts]))


@given(FAULTS, st.integers(0, 2**31), st.integers(0, 2**31))
def test_a_chain_does_not_depend_on_the_others(fault: Fault, seed: int, other: int) -> None:
    together = Chains(fault, [other, seed], ["x", "a", "y"]).draw(20)
    alone = Chains(fault, [seed], ["a"]).draw(20)
    np.testing.assert_array_equal(together[:, 1, 1], alone[:, 0, 0])


def test_entities_kinds_and_seeds_have_luck_of_their_own() -> None:
    base = Chains(Fault("guest", 0.5, 0.5), [0, 1], ["a", "b"]).draw(200)
    other = Chains(Fault("host", 0.5, 0.5), [0], ["a"]).draw(200)[:, 0, 0]
    columns = [base[:, 0, 0], base[:, 0, 1], base[:, 1, 0], other]
    for number, column in enumerate(columns):
        for later in columns[number + 1 :]:
            assert 0.3 < (column == later).mean() < 0.7
