"""Equal tags are one person with one slot."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.align import matching
from dvfl.align.matching import Matched, Tagged, Tags, extended, grouped, matched
from dvfl.errors import UserError

PARTIES = ("guest-1", "guest-2", "guest-3", "owner")


def tags(numbers: Iterable[int], alike: bool = False) -> Tags:
    """A tag for each number; `alike` in their first 8 bytes."""
    numbers = list(numbers)
    made = [
        b"".join([bytes(8) if alike else (n * 2654435761).to_bytes(8, "little"), n.to_bytes(24, "big")])
        for n in numbers
    ]
    return np.frombuffer(b"".join(made), np.uint8).reshape(-1, 32)


def draw(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def sets(train: dict[str, Iterable[int]], test: dict[str, Iterable[int]] | None = None, alike: bool = False) -> Any:
    return {name: Tagged(tags(train.get(name, ()), alike), tags((test or {}).get(name, ()), alike)) for name in PARTIES}


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.integers(0, 60), st.tuples(st.sets(st.sampled_from(PARTIES), min_size=1), st.booleans())),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_every_subset_of_parties_is_told_who_is_who(
    people: dict[int, tuple[set[str], bool]], luck: Any, alike: bool
) -> None:
    rows: dict[str, dict[str, list[int]]] = {"train": {}, "test": {}}
    for part, is_test in (("train", False), ("test", True)):
        for name in PARTIES:
            rows[part][name] = [one for one, (holders, tests) in people.items() if name in holders and tests == is_test]
            luck.shuffle(rows[part][name])
    found = matched(sets(rows["train"], rows["test"], alike), "owner", draw(), reserve=3)
    slot_of: dict[int, int] = {}
    for name in PARTIES:
        for part in ("train", "test"):
            for one, slot in zip(rows[part][name], getattr(found.slots[name], part).tolist(), strict=True):
                assert slot_of.setdefault(one, slot) == slot
    known = {one: slot for one, slot in slot_of.items() if people[one][0] != {"owner"}}
    assert found.unmatched == len(slot_of) - len(known)
    assert all(slot == -1 for one, slot in slot_of.items() if one not in known)
    train = [slot for one, slot in known.items() if not people[one][1]]
    test = [slot for one, slot in known.items() if people[one][1]]
    assert sorted(train) == list(range(found.training))
    assert sorted(test) == list(range(found.training, found.training + found.encode_only))
    for one, slot in known.items():
        assert [name in people[one][0] for name in found.guests] == found.presence[slot].tolist()
    assert found.presence.shape == (found.training + found.encode_only + 3, 3)
    assert not found.presence[found.training + found.encode_only :].any()


def test_slots_are_drawn_at_random() -> None:
    of = sets({"guest-1": range(100)})
    first, second = (matched(of, "owner", draw(seed), 0).slots["guest-1"].train for seed in (0, 1))
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first != second).any() and (first != np.arange(100)).any()


def test_tags_that_begin_alike_are_told_apart() -> None:
    order, begins = grouped(tags([3, 1, 3, 2, 1], alike=True))
    assert begins.sum() == 3 and len(order) == 5


def test_ids_in_training_rows_and_test_rows_are_refused_with_their_number() -> None:
    with pytest.raises(
        UserError, match=r"2 ids are in training rows \(of guest-1, owner\) and in test rows \(of guest-2\)"
    ):
        matched(sets({"guest-1": [1, 2, 3], "owner": [2]}, {"guest-2": [2, 3]}), "owner", draw(), 0)


def test_tags_that_repeat_in_one_set_are_refused() -> None:
    with pytest.raises(UserError, match="guest-2: 1 of 3 tags of its train rows repeat"):
        matched(sets({"guest-2": [1, 2, 1]}), "owner", draw(), 0)


def test_more_slots_than_there_are_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_SLOTS", 5)
    with pytest.raises(UserError, match="6 slots are needed"):
        matched(sets({"guest-1": [1, 2]}), "owner", draw(), 4)


def later(**of: Iterable[int]) -> dict[str, Tags]:
    return {name: tags(of.get(name.replace("-", "_"), ())) for name in PARTIES}


def begun() -> Matched:
    return matched(sets({"guest-1": [1, 2], "guest-2": [2, 3], "owner": [1, 9]}, {"guest-1": [4]}), "owner", draw(), 2)


def test_later_rows_get_the_slot_of_an_equal_tag_or_one_of_the_reserve() -> None:
    first = begun()
    second = extended(first, later(guest_1=[3, 9], guest_2=[7, 9], owner=[9, 2, 100]), draw())
    of_three = first.slots["guest-2"].train[1]
    assert second.slots["guest-1"].test[0] == of_three
    assert second.slots["guest-1"].test[1] == second.slots["guest-2"].test[1] == second.slots["owner"].test[0]
    assert second.slots["owner"].test[1:].tolist() == [first.slots["guest-1"].train[1], -1]
    assert {int(second.slots["guest-2"].test[0]), int(second.slots["guest-2"].test[1])} == {4, 5}
    assert (second.training, second.encode_only, second.reserve) == (3, 3, 0)
    assert second.presence[of_three].tolist() == [True, True, False]
    assert second.presence[second.slots["guest-2"].test[1]].tolist() == [True, True, False]
    third = extended(second, later(guest_3=[7]), draw())
    assert third.slots["guest-3"].test.tolist() == [second.slots["guest-2"].test[0]]


def test_a_reserve_that_is_used_up_is_refused_with_the_number() -> None:
    with pytest.raises(UserError, match="3 later rows need a slot of their own and the reserve has 2; start a new run"):
        extended(begun(), later(guest_1=[10, 11], guest_2=[11, 12]), draw())


def test_later_rows_of_ids_that_have_a_row_are_refused() -> None:
    with pytest.raises(UserError, match="guest-2: 1 of 2 later rows have an id that has a slot already"):
        extended(begun(), later(guest_2=[2, 10]), draw())


def test_what_is_saved_is_what_was_matched() -> None:
    first = begun()
    second = Matched.from_bytes(first.to_bytes())
    assert (second.owner, second.guests, second.unmatched) == ("owner", first.guests, 1)
    assert (second.presence == first.presence).all() and (second.tags == first.tags).all()
    for name in PARTIES:
        assert [part.tolist() for part in second.slots[name]] == [part.tolist() for part in first.slots[name]]
    assert (second.training, second.encode_only, second.reserve) == (3, 1, 2)
