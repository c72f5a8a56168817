"""Up/down chains: their rates, keys, requests and memory."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dvfl.parties.faults.chains import Chains
from dvfl.parties.faults.corruption import Corruption
from dvfl.parties.faults.fault_set import KINDS, NO_FAULTS, Fault, Faults, Kind
from dvfl.parties.faults.lateness import Lateness
from dvfl.parties.faults.outages import Outage, Outages
from dvfl.parties.numerics.randomness import numpy_generator

RATES = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])


def crash(kind: Kind, down: float, up: float) -> Faults:
    return Faults((Fault(kind, down, up),))


def chains(kind: Kind, down: float, up: float, seeds: Sequence[int], entities: Sequence[str]) -> Chains:
    return Chains(kind, [crash(kind, down, up)] * len(seeds), seeds, entities)


def recorded(*rows: Outage) -> Faults:
    return Faults(outages=Outages("outages.csv", rows))


# Rates.


@pytest.mark.parametrize(("down", "up"), [(0.3, 0.1), (0.1, 0.5), (0.5, 1.0)])
def test_the_share_of_time_alive_is_that_of_the_chain(down: float, up: float) -> None:
    states = chains("guest", down, up, range(20), [f"guest-{i}" for i in range(10)]).draw(0, 500)
    assert states[100:].mean() == pytest.approx(up / (up + down), abs=0.01)


def test_live_ones_die_and_dead_ones_rejoin_at_their_rates() -> None:
    states = chains("host", 0.3, 0.1, range(20), [f"host-{i}" for i in range(10)]).draw(0, 500)
    before, after = states[:-1], states[1:]
    assert (~after[before]).mean() == pytest.approx(0.3, abs=0.01)
    assert after[~before].mean() == pytest.approx(0.1, abs=0.01)


def test_all_start_alive_and_the_first_draw_may_already_kill() -> None:
    states = chains("host", 0.3, 0.0, range(50), [f"host-{i}" for i in range(40)]).draw(0, 1)
    assert (~states).mean() == pytest.approx(0.3, abs=0.04)


def test_without_a_rate_of_dying_nobody_ever_dies() -> None:
    assert chains("guest", 0.0, 0.0, range(3), ["a", "b"]).draw(0, 1000).all()


def test_at_a_rate_of_one_all_are_dead_from_the_first_request_on() -> None:
    assert not chains("guest", 1.0, 0.0, range(3), ["a", "b"]).draw(0, 1000).any()


def test_replicas_of_one_stack_have_rates_of_their_own() -> None:
    faults = [NO_FAULTS, crash("guest", 1.0, 0.0), crash("host", 1.0, 0.0), crash("guest", 1.0, 1.0)]
    states = Chains("guest", faults, [0] * 4, ["a"]).draw(0, 4)[..., 0]
    np.testing.assert_array_equal(states, np.array([[1, 0, 1, 0], [1, 0, 1, 1], [1, 0, 1, 0], [1, 0, 1, 1]], bool))


def test_every_replica_needs_its_faults() -> None:
    with pytest.raises(ValueError, match="1 faults for 2 replicas"):
        Chains("guest", [NO_FAULTS], [0, 1], ["a"])


# Keys.


@given(st.sampled_from(KINDS), RATES, RATES, st.lists(st.integers(1, 10), min_size=1, max_size=5), st.integers(0, 9))
def test_it_does_not_matter_how_many_requests_are_drawn_at_once(
    kind: Kind, down: float, up: float, parts: list[int], seed: int
) -> None:
    whole, pieces = (chains(kind, down, up, [seed], ["a", "b"]) for _ in range(2))
    starts = np.cumsum([0, *parts[:-1]])
    drawn = [pieces.draw(int(start), part) for start, part in zip(starts, parts, strict=True)]
    np.testing.assert_array_equal(whole.draw(0, sum(parts)), np.concatenate(drawn))


@given(st.sampled_from(KINDS), RATES, RATES, st.integers(0, 2**31), st.integers(0, 2**31))
def test_a_chain_does_not_depend_on_the_others(kind: Kind, down: float, up: float, seed: int, other: int) -> None:
    faults = [NO_FAULTS, crash(kind, 0.5, 0.5), crash(kind, down, up)]
    together = Chains(kind, faults, [seed, other, seed], ["x", "a", "y"]).draw(0, 20)
    alone = chains(kind, down, up, [seed], ["a"]).draw(0, 20)
    np.testing.assert_array_equal(together[:, 2, 1], alone[:, 0, 0])


def test_entities_kinds_and_seeds_have_luck_of_their_own() -> None:
    base = chains("guest", 0.5, 0.5, [0, 1], ["a", "b"]).draw(0, 200)
    other = chains("host", 0.5, 0.5, [0], ["a"]).draw(0, 200)[:, 0, 0]
    columns = [base[:, 0, 0], base[:, 0, 1], base[:, 1, 0], other]
    for number, column in enumerate(columns):
        for later in columns[number + 1 :]:
            assert 0.3 < (column == later).mean() < 0.7


# Requests.


def by_hand(down: float, up: float, seed: int, entity: str, asked: NDArray[np.bool_]) -> list[bool]:
    """The states of one chain after each round, request by request from one long row of luck."""
    luck = iter(numpy_generator(seed, "guest", entity).random(len(asked), np.float32))
    alive, states = True, []
    for now in asked:
        if now:
            draw = next(luck)
            alive = not draw < np.float32(down) if alive else bool(draw < np.float32(up))
        states.append(alive)
    return states


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_chains_are_those_made_by_hand_over_several_blocks_of_luck(share: float) -> None:
    rates, seeds, entities = [(0.3, 0.1), (0.02, 0.9)], [3, 4], ["a", "b"]
    asked = np.random.default_rng(0).random((2500, 2, 2)) < share
    tested = Chains("guest", [crash("guest", *rate) for rate in rates], seeds, entities)
    states = np.stack([tested.request(t, asked[t] if share < 1 else None) for t in range(len(asked))])
    for replica, seed in enumerate(seeds):
        for number, entity in enumerate(entities):
            expected = by_hand(*rates[replica], seed, entity, asked[:, replica, number])
            np.testing.assert_array_equal(states[:, replica, number], expected)


def test_a_chain_that_is_not_asked_keeps_its_state_and_its_luck() -> None:
    one, other = (chains("guest", 0.4, 0.4, [0], ["a", "b"]) for _ in range(2))
    one.draw(0, 7)
    before = other.draw(0, 7)[-1]
    for t in range(7, 17):
        np.testing.assert_array_equal(one.request(t, np.zeros((1, 2), bool)), before)
    np.testing.assert_array_equal(one.draw(17, 50), other.draw(7, 50))


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 2), (2,)])
def test_who_is_asked_is_broadcast(shape: tuple[int, ...]) -> None:
    one, other = (chains("guest", 0.4, 0.4, range(3), ["a", "b"]) for _ in range(2))
    for t, asked in enumerate(np.random.default_rng(0).random((40, *shape)) < 0.5):
        np.testing.assert_array_equal(one.request(t, asked), other.request(t, np.broadcast_to(asked, (3, 2))))


def test_who_changes_an_answer_does_not_change_the_chain() -> None:
    one, other = (chains("guest", 0.4, 0.4, [0], ["a", "b"]) for _ in range(2))
    one.request(0)[:] = False
    other.request(0)
    np.testing.assert_array_equal(one.draw(1, 50), other.draw(1, 50))


# Recorded outages.


def test_a_recorded_outage_hides_the_chain_and_does_not_move_it() -> None:
    crashes = (Fault("guest", 0.4, 0.4),)
    plain = Chains("guest", [Faults(crashes)], [0], ["a", "b"]).draw(0, 40)
    both = Chains("guest", [Faults(crashes, Outages("", (Outage("b", 5, 15),)))], [0], ["a", "b"]).draw(0, 40)
    expected = plain.copy()
    expected[5:15, 0, 1] = False
    np.testing.assert_array_equal(both, expected)


def test_replicas_of_one_stack_have_records_of_their_own() -> None:
    faults = [NO_FAULTS, recorded(Outage("a", 1, 2)), recorded(Outage("a", 2, None))]
    states = Chains("host", faults, range(3), ["a"]).draw(0, 4)[..., 0]
    np.testing.assert_array_equal(states, np.array([[1, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 0]], bool))


def test_recorded_outages_go_by_the_round_not_by_the_request() -> None:
    tested = Chains("host", [recorded(Outage("a", 10, 20))], [0], ["a"])
    assert [bool(tested.request(t)) for t in (9, 10, 19, 20, 15)] == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("faults", "active"),
    [
        (NO_FAULTS, False),
        (crash("guest", 0.0, 0.5), False),
        (crash("host", 0.5, 0.5), False),
        (crash("guest", 0.1, 0.5), True),
        (recorded(Outage("host-1", 0, None)), False),
        (recorded(Outage("host-1", 0, None), Outage("b", 900, 901)), True),
        (Faults(lateness=Lateness(5), corruption=Corruption("sign", "hosts", "a")), False),
    ],
)
def test_chains_are_active_where_a_replica_suffers_from_their_kind(faults: Faults, active: bool) -> None:
    tested = Chains("guest", [NO_FAULTS, faults], [0, 1], ["a", "b"])
    assert tested.active is active
    if not active:
        assert tested.draw(0, 50).all()


# Who never comes back.


def test_a_replica_is_lost_when_its_last_chain_dies_without_a_rate_of_rejoining() -> None:
    tested = Chains("guest", [crash("guest", 0.2, 0.0), crash("guest", 0.2, 0.1), NO_FAULTS], range(3), ["a", "b"])
    assert not tested.lost_for_good().any()
    for t in range(200):
        alive = tested.request(t)
        np.testing.assert_array_equal(tested.lost_for_good(), [not alive[0].any(), False, False])
    assert tested.lost_for_good()[0]


def test_a_replica_is_lost_when_the_record_takes_all_down_for_good() -> None:
    tested = Chains("host", [recorded(Outage("a", 3, None), Outage("b", 2, 5), Outage("b", 5, None))], [0], ["a", "b"])
    assert [(tested.request(t), bool(tested.lost_for_good()))[1] for t in range(5)] == [False] * 3 + [True] * 2


def test_a_replica_is_not_lost_in_an_outage_that_ends() -> None:
    tested = Chains("host", [recorded(Outage("a", 0, 9))], [0], ["a"])
    assert not tested.request(3).any()
    assert not tested.lost_for_good().any()


def test_a_replica_is_lost_when_chain_and_record_leave_nobody() -> None:
    tested = Chains("host", [Faults((Fault("host", 0.5, 0.0),), Outages("", (Outage("a", 4, None),)))], [0], ["a", "b"])
    asked = np.array([[False, True]])
    while tested.request(0, asked)[0, 1]:
        pass
    assert not tested.lost_for_good().any()
    tested.request(4, asked)
    assert tested.lost_for_good().all()


def test_where_there_is_nobody_nobody_is_lost() -> None:
    assert not Chains("host", [crash("host", 1.0, 0.0)], [0], []).lost_for_good().any()


# Memory.


@pytest.mark.parametrize("before", [0, 1, 1023, 1024, 1025, 2048])
def test_restored_chains_go_on_as_the_others_would(before: int) -> None:
    faults = [crash("guest", 0.3, 0.1), NO_FAULTS, crash("guest", 0.05, 0.4)]
    one, other = (Chains("guest", faults, range(3), ["a", "b"]) for _ in range(2))
    asked = np.array([[True, True], [True, True], [True, False]])
    for t in range(before):
        one.request(t, asked)
    other.draw(0, 77)  # what happened there is forgotten
    other.restore(one.state())
    np.testing.assert_array_equal(one.draw(before, 1100), other.draw(before, 1100))


def test_a_state_says_what_was_asked_and_what_became_of_it() -> None:
    tested = chains("guest", 0.5, 0.5, range(2), ["a", "b"])
    assert int(tested.state()["round"]) == -1
    tested.draw(10, 5)
    alive = tested.request(20, np.array([True, False]))
    state = tested.state()
    assert state["drawn"].tolist() == [[6, 5]] * 2
    assert state["alive"].tolist() == alive.tolist()
    assert int(state["round"]) == 20
    tested.draw(21, 50)
    assert state["drawn"].tolist() == [[6, 5]] * 2


def test_restored_chains_remember_the_last_round_asked_about() -> None:
    one, other = (Chains("host", [recorded(Outage("a", 3, None))], [0], ["a"]) for _ in range(2))
    one.request(3)
    other.restore(one.state())
    assert other.lost_for_good().all()
