"""Recorded outages, against the rounds that the rows name."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dvfl.parties.faults.outages import Outage, Outages, Timetable

PARTIES = ["guest-1", "host-1", "guest-1>host-1"]
ROUNDS = np.arange(15)


@st.composite
def outages(draw: st.DrawFn) -> Outage:
    down = draw(st.integers(0, 10))
    return Outage(draw(st.sampled_from(PARTIES)), down, draw(st.none() | st.integers(down + 1, 12)))


RECORDS = st.lists(outages(), max_size=8).map(lambda rows: Outages("outages.csv", tuple(rows)))


def down(record: Outages, party: str, t: int) -> bool:
    return any(row.party == party and row.down <= t and (row.up is None or t < row.up) for row in record.rows)


@given(RECORDS)
def test_a_party_is_down_in_the_rounds_of_its_rows_and_in_no_others(record: Outages) -> None:
    for party in PARTIES:
        assert record.down(party, ROUNDS).tolist() == [down(record, party, t) for t in ROUNDS]


@given(RECORDS)
def test_a_party_is_gone_from_the_round_after_which_it_is_never_up(record: Outages) -> None:
    for party in PARTIES:
        ups = [t for t in ROUNDS if not down(record, party, t)]
        gone = None if ups and ups[-1] == ROUNDS[-1] else (ups[-1] + 1 if ups else 0)
        assert record.gone_from(party) == gone


def test_the_parties_are_named_once_in_the_order_of_the_record() -> None:
    record = Outages("", (Outage("b", 0, 1), Outage("a", 0, 1), Outage("b", 5, 6)))
    assert record.parties == ("b", "a")


@given(st.lists(st.none() | RECORDS, min_size=1, max_size=3))
def test_a_timetable_says_of_every_replica_what_its_record_says(records: list[Outages | None]) -> None:
    table = Timetable([*records, records[0]], PARTIES)
    none = Outages("", ())
    for t in ROUNDS:
        up, gone = table.up(int(t)), table.gone(int(t))
        for replica, record in enumerate([*records, records[0]]):
            for number, party in enumerate(PARTIES):
                assert up[replica, number] == (not down(record or none, party, t))
                assert gone[replica, number] == all(down(record or none, party, later) for later in range(t, 15))


@given(RECORDS)
def test_a_timetable_is_active_when_one_of_its_entities_is_ever_down(record: Outages) -> None:
    assert Timetable([None, record], ["guest-1"]).active == ("guest-1" in record.parties)
