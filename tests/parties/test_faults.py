"""Faults: how they are written on a command line, and which parties they may name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.parties.faults.corruption import HOWS, PHASES, Corruption
from dvfl.parties.faults.fault_set import KINDS, NO_FAULTS, Fault, Faults
from dvfl.parties.faults.lateness import Lateness
from dvfl.parties.faults.outages import Outage, Outages

EXACT = st.floats(0, 1)
LATE = st.integers(0, 100_000)
RECORD = Outages("c:/a folder/outages.csv", (Outage("guest-1", 3, None),))
CRASHES = st.lists(st.builds(Fault, st.sampled_from(KINDS), EXACT, EXACT), unique_by=lambda fault: fault.kind)
FAULTS = st.builds(
    Faults,
    CRASHES.map(tuple),
    st.sampled_from([None, RECORD]),
    st.none() | st.builds(Lateness, LATE, LATE, LATE),
    st.none() | st.builds(Corruption, st.sampled_from(HOWS), st.sampled_from(PHASES), st.text(min_size=1)),
)


def read(path: str) -> Outages:
    assert path == RECORD.source
    return RECORD


def unreadable(path: str) -> Outages:
    raise UserError(f"{path} is not there")


def recorded(*rows: Outage) -> Faults:
    return Faults(outages=Outages("outages.csv", rows))


# How faults are written.


@given(FAULTS)
def test_faults_are_read_back_from_their_texts(faults: Faults) -> None:
    assert Faults.parse(faults.texts, read) == faults


def test_every_kind_is_written_as_the_table_in_the_docs_says() -> None:
    texts = [
        "connection:0.3:0.1",
        "guest:0.5:1",
        "host:0:0",
        f"recorded:{RECORD.source}",
        "delay:5",
        "reorder:2",
        "duplicate:100000",
        "corrupt:permute:owner:guest-1",
    ]
    faults = Faults.parse(texts, read)
    assert faults == Faults(
        (Fault("connection", 0.3, 0.1), Fault("guest", 0.5, 1), Fault("host", 0, 0)),
        RECORD,
        Lateness(5, 2, 100_000),
        Corruption("permute", "owner", "guest-1"),
    )
    assert faults.texts == texts


def test_the_order_in_which_faults_are_given_makes_no_difference() -> None:
    texts = ["duplicate:2", "host:0.1:0.2", "delay:1", "connection:0.3:0.1"]
    assert Faults.parse(texts, read) == Faults.parse(texts[::-1], read)


def test_without_texts_nothing_goes_wrong() -> None:
    assert Faults.parse([], read) == NO_FAULTS
    assert NO_FAULTS.texts == []


def test_the_name_of_a_guest_may_hold_colons() -> None:
    faults = Faults.parse(["corrupt:sign:hosts:a:b"], read)
    assert faults.corruption == Corruption("sign", "hosts", "a:b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown kind ''; known: connection, corrupt, delay, duplicate, guest, host, recorded, reorder"),
        ("gest:0.1:0.2", "unknown kind 'gest'; did you mean 'guest'?"),
        ("flood:0.1:0.2", "known: connection, corrupt, delay, duplicate, guest, host, recorded, reorder"),
        ("guest", "guest:R_d:R_u is right, for example guest:0.3:0.1"),
        ("guest:0.1", "guest:R_d:R_u is right, for example guest:0.3:0.1"),
        ("host::0.1", "host:R_d:R_u is right, for example host:0.3:0.1"),
        ("connection:0.1:0.2:0.3", "connection:R_d:R_u is right, for example connection:0.3:0.1"),
        ("recorded", "recorded:FILE is right, for example recorded:outages.csv"),
        ("recorded:", "recorded:FILE is right, for example recorded:outages.csv"),
        ("delay", "delay:D is right, for example delay:5"),
        ("reorder:1:2", "reorder:D is right, for example reorder:5"),
        ("duplicate:", "duplicate:D is right, for example duplicate:5"),
        ("corrupt:sign:hosts", "corrupt:HOW:PHASE:GUEST is right, for example corrupt:sign:hosts:guest-1"),
        ("corrupt:sign:hosts:", "corrupt:HOW:PHASE:GUEST is right, for example corrupt:sign:hosts:guest-1"),
        ("host:often:0.2", "R_d and R_u are numbers from 0 to 1"),
        ("host:1.5:0.2", "R_d and R_u lie between 0 and 1"),
        ("host:0.5:-0.2", "R_d and R_u lie between 0 and 1"),
        ("host:nan:0.2", "R_d and R_u lie between 0 and 1"),
        ("delay:soon", "D is a number of rounds from 1 to 100000"),
        ("delay:1.5", "D is a number of rounds from 1 to 100000"),
        ("reorder:0", "D lies between 1 and 100000 rounds"),
        ("duplicate:-3", "D lies between 1 and 100000 rounds"),
        ("delay:100001", "D lies between 1 and 100000 rounds"),
        ("corrupt:scal:hosts:guest-1", "unknown way to corrupt 'scal'; did you mean 'scale'?"),
        ("corrupt:wrongly:hosts:guest-1", "unknown way to corrupt 'wrongly'; known: noise, permute, scale, sign"),
        ("corrupt:sign:host:guest-1", "unknown phase 'host'; did you mean 'hosts'?"),
        ("corrupt:sign:late:guest-1", "unknown phase 'late'; known: hosts, owner"),
        ("recorded:gone.csv", "gone.csv is not there"),
    ],
)
def test_what_is_no_fault_is_refused_with_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        Faults.parse(["connection:0.1:0.1", text] if not text.startswith("connection") else [text], unreadable)
    assert str(error.value).startswith(f"--faults {text}: ")
    assert str(error.value).endswith(message)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("connection:0.3:0.1", "connection:0.1:0.1"),
        (f"recorded:{RECORD.source}", f"recorded:{RECORD.source}"),
        ("delay:1", "delay:2"),
        ("reorder:1", "reorder:2"),
        ("duplicate:1", "duplicate:2"),
        ("corrupt:sign:hosts:guest-1", "corrupt:sign:hosts:guest-2"),
    ],
)
def test_a_kind_that_is_given_twice_is_refused(first: str, second: str) -> None:
    with pytest.raises(UserError) as error:
        Faults.parse([first, second], read)
    assert str(error.value) == f"--faults {second}: {second.split(':')[0]} is given twice"


def test_two_crashes_of_a_kind_are_refused_in_code_too() -> None:
    with pytest.raises(ValueError, match="one of a kind is right"):
        Faults((Fault("guest", 0.1, 0.1), Fault("guest", 0.2, 0.1)))


# Parties that are not there.

GUESTS, HOSTS = ["guest-1", "guest-2"], ["host-1", "host-2"]


def test_parties_and_links_that_are_there_are_accepted() -> None:
    rows = [Outage(party, 0, 1) for party in ("guest-2", "host-1", "guest-1>host-2")]
    Faults(outages=Outages("o.csv", tuple(rows)), corruption=Corruption("sign", "owner", "guest-2")).check(
        GUESTS, HOSTS
    )
    NO_FAULTS.check(GUESTS, HOSTS)


@pytest.mark.parametrize("guest", ["guest-3", "host-1"])
def test_corruption_of_a_guest_that_is_not_there_is_refused(guest: str) -> None:
    with pytest.raises(UserError) as error:
        Faults(corruption=Corruption("sign", "owner", guest)).check(GUESTS, HOSTS)
    assert str(error.value) == (
        f"--faults corrupt:sign:owner:{guest}: there is no guest '{guest}'; guests: guest-1, guest-2"
    )


@pytest.mark.parametrize("party", ["guest-3", "host-3", "host-1>guest-1", "guest-1>host-3", "guest-1>"])
def test_a_recorded_outage_of_a_party_that_is_not_there_is_refused(party: str) -> None:
    with pytest.raises(UserError) as error:
        recorded(Outage("guest-1", 0, 1), Outage(party, 0, 1)).check(GUESTS, HOSTS)
    assert str(error.value) == (
        f"--faults recorded:outages.csv: there is no party '{party}';"
        " guests: guest-1, guest-2; hosts: host-1, host-2; links are written guest>host"
    )
