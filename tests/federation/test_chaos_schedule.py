"""Who fails when: the same for the same seed, and never in two ways at once."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.lab.chaos.chaos_schedule import KINDS, Kind, Strike, Wish, dead_from, draw_strikes, parse_kinds

STRUCK: dict[Kind, list[str]] = {
    "guest": ["guest-1", "guest-2"],
    "host": ["host-1"],
    "broker": ["host-1"],
    "owner": ["owner"],
    "connection": ["guest-1>host-1", "owner>host-1"],
}


def wish(seed: int = 0, minutes: float = 5.0, down: float = 0.1, up: float = 0.3) -> Wish:
    return Wish(seed, minutes, KINDS, down, up)


def of(strikes: list[Strike], kind: Kind, entity: str) -> list[Strike]:
    return [strike for strike in strikes if (strike.kind, strike.entity) == (kind, entity)]


def test_the_same_seed_gives_the_same_outages() -> None:
    assert draw_strikes(wish(seed=3), STRUCK) == draw_strikes(wish(seed=3), STRUCK)
    assert draw_strikes(wish(seed=3), STRUCK) != draw_strikes(wish(seed=4), STRUCK)


def test_what_else_fails_changes_nothing_of_a_party_s_luck() -> None:
    alone = draw_strikes(wish(), {"guest": ["guest-2"]})
    assert alone and of(draw_strikes(wish(), STRUCK), "guest", "guest-2") == alone


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    short, long = draw_strikes(wish(minutes=1), STRUCK), draw_strikes(wish(minutes=2), STRUCK)
    over = [strike for strike in short if strike.up < 60]
    assert over and set(over) <= set(long)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), down=st.floats(0, 1), up=st.floats(0.01, 1), minutes=st.floats(0.1, 2))
def test_an_entity_fails_in_one_way_at_a_time_and_all_return(seed: int, down: float, up: float, minutes: float) -> None:
    asked = wish(seed, minutes, down, up)
    strikes = draw_strikes(asked, STRUCK)
    assert strikes == sorted(strikes, key=lambda strike: strike.down)
    for kind, names in STRUCK.items():
        for name in names:
            chain = of(strikes, kind, name)
            assert all(0 <= strike.down <= strike.up <= asked.ticks for strike in chain)
            assert all(before.up <= after.down > before.down for before, after in itertools.pairwise(chain))


def test_every_way_comes_up_and_only_where_it_belongs() -> None:
    strikes = draw_strikes(wish(minutes=20), STRUCK)
    ways = {kind: {strike.how for strike in strikes if strike.kind == kind} for kind in KINDS}
    party = {"kill", "stop"}
    assert ways == {
        "guest": party,
        "host": party,
        "owner": party,
        "broker": {"kill"},
        "connection": {"cut", "delay", "half-open"},
    }
    kills = [strike for strike in strikes if strike.how == "kill"]
    instant = [strike for strike in kills if strike.up == strike.down]
    assert 0.2 < len(instant) / len(kills) < 0.5
    assert max(strike.up - strike.down for strike in kills) >= 5
    assert all((strike.delay_s > 0) == (strike.how == "delay") for strike in strikes)


def test_rates_are_kept() -> None:
    strikes = of(draw_strikes(wish(minutes=200, down=0.1, up=0.3), {"host": ["host-1"]}), "host", "host-1")
    lasting = [strike.up - strike.down for strike in strikes if strike.up > strike.down]
    assert sum(lasting) / len(lasting) == pytest.approx(1 / 0.3, rel=0.15)
    live = 12_000 - sum(lasting)
    assert len(strikes) / live == pytest.approx(0.1, rel=0.15)


def test_nobody_fails_at_rate_0() -> None:
    assert draw_strikes(wish(down=0), STRUCK) == []


def test_who_dies_for_good_does_so_in_the_midst_of_its_training() -> None:
    moments = {dead_from(seed, "guest-1") for seed in range(20)}
    assert len(moments) == 20 and all(0.2 <= moment <= 0.8 for moment in moments)
    assert dead_from(1, "guest-1") == dead_from(1, "guest-1") != dead_from(1, "host-1")


def test_kinds_are_taken_in_any_order_and_once() -> None:
    assert parse_kinds("owner, guest,owner") == ("guest", "owner")


@pytest.mark.parametrize(
    ("text", "said"), [("guest,brocker", "did you mean 'broker'"), ("guests", "did you mean 'guest'"), (",", "empty")]
)
def test_an_unknown_kind_is_refused_with_the_nearest(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_kinds(text)
