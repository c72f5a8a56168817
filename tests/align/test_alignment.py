"""Whole alignments by both ways: right for every subset of parties, through kills, losses and wrong answers."""

import random
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meeting import OWNER, Killed, Meeting, rows

from dvfl.align.ids import IdRules
from dvfl.align.matching import Slots
from dvfl.align.rows import Rows
from dvfl.align.star.intersection import ELEMENT
from dvfl.align.star.star_guest import GuestStar
from dvfl.align.star.star_slots import packed
from dvfl.align.tasks import MOST_BYTES, BadTask, Guest, Task
from dvfl.align.union.curve import POINT, hashed
from dvfl.align.union.union import SLOTS, GuestUnion
from dvfl.errors import RunFailed, UserError

PARTIES = ("guest-1", "guest-2", "guest-3", OWNER)
WAYS = pytest.mark.parametrize("way", ["union", "star"])


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuestUnion, "chunk", 5)
    monkeypatch.setattr(GuestStar, "chunk", 7)


def some_sets() -> dict[str, Rows]:
    """Somebody in every subset of the parties, in training rows and in test rows."""
    held: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in PARTIES}
    for subset in range(1, 16):
        for place, name in enumerate(PARTIES):
            if subset >> place & 1:
                held[name][0].append(subset)
                held[name][1].append(100 + subset)
    return {name: rows(*parts) for name, parts in held.items()}


def slots_of(meeting: Meeting) -> dict[str, list[list[int]]]:
    return {name: [part.tolist() for part in meeting.slots(name)] for name in PARTIES}


@WAYS
@pytest.mark.parametrize("pad", [1, 4])
def test_every_subset_of_parties_meets_in_the_right_slots(way: str, pad: int) -> None:
    meeting = Meeting(some_sets(), way, reserve=3, pad=pad)
    result = meeting.run()
    meeting.check()
    assert result.unmatched == 2 and result.reserve == 3


@WAYS
@settings(max_examples=8, deadline=None)
@given(st.lists(st.sets(st.integers(0, 9)), min_size=6, max_size=6), st.integers(0, 9))
def test_any_sets_meet_in_the_right_slots(way: str, held: list[set[int]], seed: int) -> None:
    names = ("guest-1", "guest-2", OWNER)
    parts = [rows(train, (100 + one for one in test)) for train, test in zip(held[:3], held[3:], strict=True)]
    meeting = Meeting(dict(zip(names, parts, strict=True)), way, seed)
    meeting.run()
    meeting.check()


@WAYS
def test_a_restart_of_everybody_after_every_answer_changes_nothing(way: str) -> None:
    plain = Meeting(some_sets(), way, reserve=3)
    plain.run()
    killed = Meeting(some_sets(), way, reserve=3)
    # The same secrets as those that stayed up, whoever is started when.
    for name in PARTIES:
        killed.storages[name]["align.secret"] = plain.storages[name]["align.secret"]
    killed.start_owner()

    def kill(step: int) -> None:
        killed.guests.clear()
        killed.start_owner()

    killed.run(kill)
    killed.check()
    assert slots_of(killed) == slots_of(plain)
    assert len(killed.tasks) == len(plain.tasks)  # nothing that had come was asked for again


@WAYS
@pytest.mark.parametrize("seed", range(5))
def test_kills_while_tasks_are_under_way_lose_no_more_than_those(way: str, seed: int) -> None:
    meeting, luck = Meeting(some_sets(), way, seed), random.Random(seed)

    def after(step: int) -> None:
        if luck.random() < 0.2:
            meeting.guests.pop(luck.choice(PARTIES), None)
        if luck.random() < 0.1:
            for party in PARTIES:
                meeting.owner.wanted(party)  # given out, and never answered
            meeting.start_owner()

    meeting.run(after)
    meeting.check()


@WAYS
@pytest.mark.parametrize("at", [4, 6, 20, 30])
def test_a_guest_that_lost_its_disk_makes_a_new_session(way: str, at: int) -> None:
    meeting = Meeting(some_sets(), way)

    def lose(step: int) -> None:
        if step == at:
            meeting.storages["guest-2"].clear()
            meeting.guests.clear()

    meeting.run(lose)
    meeting.check()
    assert len({task.session for _, task in meeting.tasks}) == 2


@WAYS
def test_a_party_whose_rows_have_changed_makes_a_new_session(way: str) -> None:
    meeting = Meeting(some_sets(), way)

    def change(step: int) -> None:
        if step in (12, 14):
            name = "guest-1" if step == 12 else OWNER
            meeting.sets[name] = Rows([*meeting.sets[name].train, b"new"], meeting.sets[name].test)
            meeting.guests.clear()
            meeting.start_owner()

    meeting.run(change)
    meeting.check()


@WAYS
def test_a_kill_before_any_write_of_the_owner_mixes_nothing_old_with_new(way: str) -> None:
    """Also while it gives up a session, because a guest has lost its disk or its own rows have changed."""
    sets = {"guest-1": rows([1, 2, 3], [9]), "guest-2": rows([2, 3, 4], [9]), OWNER: rows([1, 3, 5])}
    write, killed = 0, True
    while killed:
        meeting, write, killed = Meeting(sets, way), write + 1, False
        meeting.storages[OWNER].kill_at = meeting.storages[OWNER].writes + write

        def trouble(step: int, meeting: Meeting = meeting) -> None:
            if step == 12:
                meeting.storages["guest-2"].clear()
                meeting.guests.clear()
            if step == 24:
                meeting.sets[OWNER] = rows([1, 3, 4])
                meeting.start_owner()

        with suppress(Killed):
            meeting.run(trouble)
        if not meeting.owner.finished:
            killed = True
            meeting.start_owner()
            meeting.run()
        meeting.check()
    assert write > 30


@WAYS
def test_an_owner_with_other_ids_than_were_aligned_is_refused(way: str) -> None:
    meeting = Meeting(some_sets(), way)
    meeting.run()
    meeting.sets[OWNER] = rows([1])
    with pytest.raises(UserError, match="not those that were aligned; align what came later by a delta"):
        meeting.start_owner()


@WAYS
def test_answers_that_come_twice_or_too_late_change_nothing(way: str) -> None:
    meeting = Meeting(some_sets(), way)
    answers: list[tuple[str, Task, bytes]] = []
    while not meeting.owner.finished:
        for party in PARTIES:
            if task := meeting.owner.wanted(party):
                answer = meeting.owner.answer(task) if party == OWNER else meeting.guest(party).answer(task)
                answers.append((party, task, answer))
                meeting.owner.took(*answers[-1])
                meeting.owner.took(*answers[-1])
                meeting.owner.took(*answers[0])
                meeting.owner.took(party, replace(task, session=bytes(32)), answer)
    meeting.check()


@WAYS
def test_a_finished_alignment_stays_finished_and_asks_nothing(way: str) -> None:
    meeting = Meeting(some_sets(), way)
    meeting.run()
    before = slots_of(meeting)
    meeting.guests.clear()
    owner = meeting.start_owner()
    assert owner.finished and all(owner.wanted(party) is None for party in PARTIES)
    assert slots_of(meeting) == before
    last = next(task for party, task in reversed(meeting.tasks) if party == "guest-1")
    assert last.kind == "done" and meeting.guest("guest-1").answer(last)


@WAYS
def test_later_rows_are_aligned_by_a_delta(way: str) -> None:
    meeting = Meeting(some_sets(), way, reserve=5)
    first = meeting.run()
    slots = slots_of(meeting)
    labels = meeting.sets[OWNER]
    label = labels.train[slots[OWNER][0].index(-1)]  # nobody had it
    newcomers = [Rows([], [label, b"300"]), Rows([], [b"301", b"300"]), Rows([], []), Rows([], [*labels.train, b"300"])]
    meeting.sets = dict(zip(PARTIES, newcomers, strict=True))
    meeting.of_owner["round"] = 1
    meeting.guests.clear()
    meeting.start_owner()
    second = meeting.run(lambda step: meeting.guests.clear())
    one, two, none, own = (meeting.slots(name).test.tolist() for name in PARTIES)
    assert one[1] == two[1] == own[-1] and one[0] == own[labels.train.index(label)] and none == []
    assert len({*one, *two}) == 3 and min(*one, *two) >= len(first.tags)
    assert [slot for slot in own[:-1] if slot != one[0]] == [slot for slot in slots[OWNER][0] if slot >= 0]
    assert (second.training, second.encode_only, second.reserve) == (first.training, first.encode_only + 3, 2)
    assert second.presence[one[1]].tolist() == [True, True, False]
    # And a third round goes on from there.
    meeting.sets = {name: Rows([], [b"301"] if name == "guest-3" else []) for name in PARTIES}
    meeting.of_owner["round"] = 2
    meeting.guests.clear()
    meeting.start_owner()
    meeting.run()
    third = meeting.slots("guest-3").test.tolist()
    assert third == [two[0]] if way == "union" else third[0] >= len(second.tags)


@WAYS
def test_a_delta_is_refused_before_the_first_round_or_after_a_lost_key(way: str) -> None:
    meeting = Meeting(some_sets(), way)
    meeting.of_owner["round"] = 1
    with pytest.raises(UserError, match="once the alignment before has finished"):
        meeting.start_owner()
    meeting.of_owner.clear()
    meeting.start_owner()
    meeting.run()
    meeting.of_owner["round"] = 1
    meeting.sets = {name: Rows([], [b"300"]) for name in PARTIES}
    meeting.guests.clear()
    meeting.storages["guest-2"].clear()
    meeting.start_owner()
    with pytest.raises(UserError, match="guest-2 has no longer the key of its first alignment"):
        meeting.run()


@WAYS
def test_a_guest_with_another_normalisation_is_refused_by_name(way: str) -> None:
    meeting = Meeting(some_sets(), way)
    meeting.rules["guest-3"] = IdRules("fold")
    with pytest.raises(UserError, match="guest-3 normalises ids differently: case = 'fold'"):
        meeting.run()


@WAYS
def test_ids_in_one_partys_training_rows_and_anothers_test_rows_are_refused(way: str) -> None:
    sets = {"guest-1": rows([1, 2]), "guest-2": rows([5], [3, 6]), OWNER: rows([3, 1])}
    with pytest.raises(UserError, match=r"1 ids.* are in training rows"):
        Meeting(sets, way).run()


@pytest.mark.parametrize(
    ("way", "kind", "wrong"),
    [
        *[(way, kind, wrong) for way in ("union", "star") for kind in ("open", "offer") for wrong in ("short", "long")],
        *[(way, "multiply", wrong) for way in ("union", "star") for wrong in ("short", "long", "no points")],
        ("union", "offer", "no points"),
        ("star", "slots", "short"),
    ],
)
def test_wrong_answers_are_refused_with_the_name_of_who_gave_them(way: str, kind: str, wrong: str) -> None:
    meeting = Meeting(some_sets(), way)
    meeting.guests["guest-2"] = Liar(meeting.guest("guest-2"), kind, wrong)
    with pytest.raises(RunFailed, match=r"^guest-2: "):
        meeting.run()


class Liar:
    """A guest that answers one kind of task wrongly."""

    def __init__(self, guest: Guest, kind: str, wrong: str) -> None:
        self._guest, self._kind, self._wrong = guest, kind, wrong

    @property
    def slots(self) -> Slots | None:
        return self._guest.slots

    def answer(self, task: Task) -> bytes:
        answer = self._guest.answer(task)
        if task.kind != self._kind:
            return answer
        if self._wrong == "no points":
            return answer[:16] + b"\xff" * (len(answer) - 16)
        return answer[:-1] if self._wrong == "short" else answer + b"\0"


def test_no_guest_of_a_union_sees_a_point_twice() -> None:
    meeting = Meeting(some_sets())
    meeting.run()
    for guest in meeting.names:
        contents = [task.content for party, task in meeting.tasks if party == guest and task.kind == "multiply"]
        seen = [content[at : at + POINT] for content in contents for at in range(0, len(content), POINT)]
        others = sum(len(part) for name, of in meeting.sets.items() if name != guest for part in of)
        assert len(seen) == len(set(seen)) == others


@WAYS
def test_ids_are_nowhere_but_at_their_owner(way: str) -> None:
    planted = [b"planted-%d" % one for one in range(12)]
    sets = {
        "guest-1": Rows(planted[:8], [planted[10]]),
        "guest-2": Rows(planted[4:9], [planted[11]]),
        OWNER: Rows(planted[2:6], [planted[10]]),
    }
    meeting = Meeting(sets, way, pad=4)
    meeting.run()
    meeting.check()
    recorded = repr(meeting.tasks).encode() + b"".join(
        content for storage in meeting.storages.values() for content in storage.values()
    )
    assert b"planted" not in recorded and b"planted".hex().encode() not in recorded


def test_no_message_is_larger_than_the_wire_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # chunks of their full size
    assert max(4 * SLOTS, GuestUnion.chunk * POINT, GuestStar.chunk * ELEMENT) <= MOST_BYTES
    own, theirs = np.arange(40_000, dtype=np.int32), np.arange(80_000, dtype=np.int32)
    told = packed(rows(range(40_000)), own, theirs, 80_000, bytes(32))
    assert len(told) > 4 and max(map(len, told)) <= MOST_BYTES


@WAYS
@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "steal"},
        {"round": 1},
        {"session": b"short"},
        {"kind": "offer", "number": 99},
        {"kind": "offer", "number": -1},
        {"kind": "slots", "content": b"xyz"},
        {"kind": "done", "content": b""},
        {"kind": "multiply", "content": bytes(MOST_BYTES + 1)},
    ],
)
def test_what_no_owner_would_ask_is_refused(way: str, wrong: dict[str, Any]) -> None:
    meeting = Meeting(some_sets(), way)
    task = meeting.owner.wanted("guest-1")
    assert task is not None
    with pytest.raises(BadTask):
        meeting.guest("guest-1").answer(replace(task, **wrong))


def test_points_that_the_owner_made_up_are_given_back_as_nothing() -> None:
    meeting = Meeting(some_sets())
    task = meeting.owner.wanted("guest-1")
    assert task is not None
    wrong = replace(task, kind="multiply", content=hashed([b"a"], bytes(32)) + b"\2" * 32)
    assert len(meeting.guest("guest-1").answer(wrong)) == 16


def test_a_star_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "private_set_intersection", None)
    with pytest.raises(UserError, match=r"pip install 'dvfl\[psi\]'"):
        Meeting(some_sets(), "star")
