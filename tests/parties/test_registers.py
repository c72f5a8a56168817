"""The newest message wins, whatever the order of arrival."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dvfl.parties.memory.registers import NEVER, Register, Stamp, held

STAMPS = st.builds(Stamp, st.integers(0, 3), st.integers(0, 4), st.integers(0, 4))


def test_a_register_that_was_never_written_holds_nothing() -> None:
    register: Register[str] = Register()
    assert register.read() is None
    assert register.stamp is None


@given(st.lists(STAMPS, min_size=1))
def test_the_newest_stamp_wins_in_any_order_with_any_repetition(messages: list[Stamp]) -> None:
    register: Register[Stamp] = Register()
    for number, stamp in enumerate(messages):
        newer = all(stamp > earlier for earlier in messages[:number])
        assert register.write(stamp, stamp) is newer
        assert register.read() == max(messages[: number + 1])


@given(STAMPS, STAMPS)
def test_a_late_old_message_never_replaces_a_newer_one(one: Stamp, other: Stamp) -> None:
    old, new = sorted((one, other))
    register: Register[str] = Register()
    register.write(new, "new")
    assert not register.write(old, "old")
    assert (register.stamp, register.read()) == (new, "new")


def test_a_restarted_guest_outranks_all_it_ever_sent() -> None:
    assert Stamp(1, 0, 0) > Stamp(0, 99, 99)
    assert Stamp(0, 2, 0) > Stamp(0, 1, 99)


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(arrays.array_shapes(min_dims=2, max_dims=4, max_side=4))
    arrived = draw(arrays.arrays(np.int64, shape, elements=st.integers(NEVER, 9)))
    before = draw(arrays.arrays(np.int64, shape[1:], elements=st.integers(NEVER, 9)))
    return arrived, before


@given(deliveries())
def test_held_is_a_register_written_round_after_round(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    arrived, before = drawn
    holding = held(arrived, before)
    for index in np.ndindex(arrived.shape[1:]):
        register: Register[int] = Register()
        if before[index] != NEVER:
            register.write(Stamp(0, 0, int(before[index])), int(before[index]))
        for number, value in enumerate(arrived[(slice(None), *index)]):
            if value != NEVER:
                register.write(Stamp(0, 0, int(value)), int(value))
            assert holding[(number, *index)] == (NEVER if register.read() is None else register.read())
