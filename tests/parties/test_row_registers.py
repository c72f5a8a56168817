"""Row registers against dictionaries, and what a host draws from them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dvfl.parties.memory.registers import Stamp
from dvfl.parties.memory.row_registers import HostTable, RowRegister

SLOTS, TRAIN, WIDTH = 8, 5, 3
FIRST = Stamp(1, 0, 0)
Ints = NDArray[np.int32]
Message = tuple[Ints, Stamp]
STAMPS = st.builds(Stamp, st.integers(1, 3), st.integers(0, 2), st.integers(0, 2))
SOME = st.lists(st.integers(0, SLOTS - 1), unique=True).map(lambda numbers: slots(*numbers))
MESSAGES = st.lists(st.tuples(SOME, STAMPS), max_size=8)


def slots(*numbers: int) -> Ints:
    return np.array(numbers, np.int32)


def value(slot: int, stamp: Stamp) -> int:
    """What a guest sent: it tells which slot, and when."""
    return slot + 10 * stamp.iteration + 100 * stamp.epoch + 1000 * stamp.incarnation


def rows(of: Ints, stamp: Stamp) -> NDArray[np.float32]:
    values = [value(slot, stamp) for slot in of.tolist()]
    return np.repeat(np.array(values, np.float32)[:, None], WIDTH, axis=1)


def register(*messages: Message, train: int = TRAIN) -> RowRegister:
    made = RowRegister.empty(SLOTS, WIDTH, train=train)
    for of, stamp in messages:
        made.write(of, rows(of, stamp), stamp)
    return made


def check_same(one: RowRegister, other: RowRegister) -> None:
    for name in ("values", "incarnations", "steps", "held", "count"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert sorted(one.drawable) == sorted(other.drawable)


@given(MESSAGES, st.data())
def test_any_order_with_any_repetition_ends_like_the_order_of_stamps(
    messages: list[Message], data: st.DataObject
) -> None:
    repeated = data.draw(st.lists(st.sampled_from(messages), max_size=6)) if messages else []
    arrived = data.draw(st.permutations(messages + repeated))
    in_order = sorted(messages, key=lambda message: message[1])
    check_same(register(*arrived), register(*in_order))


@given(MESSAGES)
def test_a_write_takes_the_rows_that_are_newer_and_counts_them(messages: list[Message]) -> None:
    tested, newest = register(), dict[int, Stamp]()
    for of, stamp in messages:
        newer = [slot for slot in of.tolist() if slot not in newest or stamp > newest[slot]]
        assert tested.write(of, rows(of, stamp), stamp) == len(newer)
        newest |= dict.fromkeys(newer, stamp)
        values, held = tested.take(np.arange(SLOTS, dtype=np.int32))
        for slot in range(SLOTS):
            assert held[slot] == tested.held[slot] == (slot in newest)
            assert (values[slot] == (value(slot, newest[slot]) if slot in newest else 0)).all()
        assert tested.count == len(newest)
        assert sorted(tested.drawable) == sorted(slot for slot in newest if slot < TRAIN)


def test_a_restarted_guest_outranks_all_it_ever_sent() -> None:
    tested = register((slots(2), Stamp(1, 99, 99)))
    assert tested.write(slots(2), rows(slots(2), Stamp(2, 0, 0)), Stamp(2, 0, 0)) == 1
    assert tested.write(slots(2), rows(slots(2), Stamp(1, 100, 0)), Stamp(1, 100, 0)) == 0


def test_iterations_of_any_size_do_not_reach_into_epochs() -> None:
    tested = register((slots(2), Stamp(1, 0, 2**32 - 1)))
    assert tested.write(slots(2), rows(slots(2), Stamp(1, 1, 0)), Stamp(1, 1, 0)) == 1


def test_a_slot_that_stands_in_a_message_twice_is_held_once() -> None:
    tested = register((slots(4, 4, 1), FIRST))
    assert tested.count == 2
    assert sorted(tested.drawable) == [1, 4]


def test_an_incarnation_that_means_never_is_refused() -> None:
    with pytest.raises(ValueError, match="1 or more is right"):
        register((slots(1), Stamp(0, 1, 1)))


@given(MESSAGES, MESSAGES)
def test_after_void_it_is_as_if_nothing_had_come_before(before: list[Message], after: list[Message]) -> None:
    tested = register(*before)
    tested.void()
    check_same(tested, register())
    for of, stamp in after:
        tested.write(of, rows(of, stamp), stamp)
    check_same(tested, register(*after))


@given(MESSAGES)
def test_a_register_is_found_again_in_its_arrays(messages: list[Message]) -> None:
    written = register(*messages)
    found = RowRegister(written.values, written.incarnations, written.steps, train=TRAIN)
    check_same(found, written)
    assert len(found.stand_in(slots(0), np.random.default_rng(0))[0]) == 1


def test_a_register_writes_into_the_files_it_was_given(tmp_path: Path) -> None:
    def mapped(name: str, kind: type, shape: tuple[int, ...]) -> np.memmap:
        return np.memmap(tmp_path / name, kind, "r+" if (tmp_path / name).exists() else "w+", shape=shape)

    def opened() -> RowRegister:
        stamps = [mapped(name, np.int64, (SLOTS,)) for name in ("incarnations", "steps")]
        return RowRegister(mapped("values", np.float32, (SLOTS, WIDTH)), *stamps, train=TRAIN)

    opened().write(slots(6, 3), rows(slots(6, 3), FIRST), FIRST)
    check_same(opened(), register((slots(6, 3), FIRST)))


@given(MESSAGES, SOME, st.integers(0, 99))
def test_a_slot_that_is_not_held_is_replaced_by_a_training_slot_that_is(
    messages: list[Message], asked: Ints, seed: int
) -> None:
    tested = register(*messages)
    values, heard = tested.stand_in(asked, np.random.default_rng(seed))
    assert heard == (len(tested.drawable) > 0)
    if not heard:
        assert values.shape == (len(asked), WIDTH) and not values.any()
        return
    stand_ins = tested.take(tested.drawable)[0].tolist()
    for slot, row in zip(asked.tolist(), values, strict=True):
        assert row.tolist() == tested.values[slot].tolist() if tested.held[slot] else row.tolist() in stand_ins


def test_stand_ins_are_drawn_evenly_from_the_training_slots() -> None:
    tested = register((slots(0, 3, 4, 6), FIRST))
    values, _ = tested.stand_in(np.full(6000, 1, np.int32), np.random.default_rng(0))
    drawn = Counter(values[:, 0].tolist())
    assert set(drawn) == {value(slot, FIRST) for slot in (0, 3, 4)}
    assert all(1900 < times < 2100 for times in drawn.values())


# Hosts.


def table(*held: tuple[int, ...]) -> HostTable:
    """A host whose guests have each written some slots, guest by guest in an incarnation of its own."""
    return HostTable([register((slots(*mine), Stamp(guest + 1, 0, 0))) for guest, mine in enumerate(held)])


def of_guest(b: NDArray[np.float32], guest: int) -> NDArray[np.int64]:
    """Which slots a guest contributed to an input."""
    block = b[0, :, guest * WIDTH : (guest + 1) * WIDTH]
    assert (block == block[:, :1]).all() and (block[:, 0] // 1000 == guest + 1).all()
    return block[:, 0].astype(np.int64) % 1000


@given(st.lists(SOME, min_size=1, max_size=3), st.integers(0, 99))
def test_a_host_draws_slots_that_somebody_holds_and_every_guest_adds_its_own(held: list[Ints], seed: int) -> None:
    tested, batch = table(*(tuple(mine.tolist()) for mine in held)), 20
    known = {slot for mine in held for slot in mine.tolist() if slot < TRAIN}
    b, present = tested.draw(batch, np.random.default_rng(seed))
    assert tested.known == len(known)
    assert (b.shape, b.dtype, present.shape) == ((1, batch, WIDTH * len(held)), np.float32, (1, batch, len(held)))
    rows_of: dict[int, set[int]] = {place: set() for place in range(batch)}
    for guest, mine in enumerate(held):
        drawable = {slot for slot in mine.tolist() if slot < TRAIN}
        assert (present[0, :, guest] == bool(drawable)).all()
        if drawable:
            for place, slot in enumerate(of_guest(b, guest).tolist()):
                assert slot in drawable
                rows_of[place].add(slot)
        else:
            assert not b[0, :, guest * WIDTH : (guest + 1) * WIDTH].any()
    if all(known <= set(mine.tolist()) for mine in held) and known:
        assert all(len(contributed) == 1 for contributed in rows_of.values())  # aligned where nobody lacks anything


def test_slots_that_more_guests_hold_are_not_drawn_more_often() -> None:
    tested = table((0, 1, 2, 6), (0, 1), (0, 3))
    b, _ = tested.draw(12_000, np.random.default_rng(0))
    first = Counter(of_guest(b, 0).tolist())  # it lacks slot 3, and a third of that goes to each of its three
    assert all(3800 < first[slot] < 4200 for slot in (0, 1, 2))
    third = Counter(of_guest(b, 2).tolist())  # a quarter each of slots 0 and 3, and half of the rest
    assert all(5800 < third[slot] < 6200 for slot in (0, 3))


def test_a_host_that_has_heard_nobody_has_an_empty_input() -> None:
    tested = table((), ())
    b, present = tested.draw(4, np.random.default_rng(0))
    assert tested.known == 0 and not b.any() and not present.any()


def test_slots_that_come_between_two_draws_are_drawn_from_then_on() -> None:
    tested, generator = table((0, 1), (1,)), np.random.default_rng(0)
    assert set(of_guest(tested.draw(100, generator)[0], 0).tolist()) == {0, 1}
    tested.registers[0].write(slots(4), rows(slots(4), Stamp(1, 1, 0)) - 100, Stamp(1, 1, 0))
    assert set(of_guest(tested.draw(100, generator)[0], 0).tolist()) == {0, 1, 4}
    assert tested.known == 3


def test_what_only_a_voided_guest_held_is_not_drawn_again() -> None:
    tested, generator = table((0, 1, 2), (1,)), np.random.default_rng(0)
    tested.draw(10, generator)
    tested.registers[0].void()
    b, present = tested.draw(50, generator)
    assert tested.known == 1
    assert set(of_guest(b, 1).tolist()) == {1} and not present[0, :, 0].any() and present[0, :, 1].all()


def test_to_encode_a_slot_a_guest_that_lacks_it_is_absent() -> None:
    b, present = table((0, 6), (6, 7)).inputs(slots(0, 6, 7))
    assert present[0].tolist() == [[True, False], [True, True], [False, True]]
    assert b[0, :, 0].tolist() == [1000, 1006, 0]
    assert b[0, :, WIDTH].tolist() == [0, 2006, 2007]
