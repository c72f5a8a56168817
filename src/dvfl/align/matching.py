"""From every party's tags to slots: equal tags are one person, and get one slot."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dvfl.errors import UserError

MOST_SLOTS = 2**31  # a slot is an int32 on the wire
Tags = NDArray[np.uint8]  # (rows, 32)
_AT_ONCE = 1 << 18  # rows that are compared at once


class Tagged(NamedTuple):
    """One party's tags: of rows that are trained on, and of those that are only ever encoded."""

    train: Tags
    test: Tags


class Slots(NamedTuple):
    """The slot of each row, in the order in which the tags (or the rows) were given; -1 where it has none."""

    train: NDArray[np.int32]
    test: NDArray[np.int32]


@dataclass(frozen=True)
class Matched:
    """Who has which slot. Training slots come first, then those that are only ever encoded, then the reserve."""

    owner: str
    guests: tuple[str, ...]
    slots: dict[str, Slots]  # every party's, the owner's too
    training: int
    encode_only: int
    reserve: int
    presence: NDArray[np.bool_]  # (slots, guests)
    tags: Tags  # (training + encode_only, 32), by slot

    @property
    def unmatched(self) -> int:
        """Ids of the owner that no guest has."""
        return sum(int((part < 0).sum()) for part in self.slots[self.owner])

    def to_bytes(self) -> bytes:
        """Everything, for a disk."""
        arrays = {f"{part}.{name}": array for name, of in self.slots.items() for part, array in of._asdict().items()}
        counts = np.array([self.training, self.encode_only, self.reserve])
        out = io.BytesIO()
        np.savez(
            out,
            names=np.array([self.owner, *self.guests]),
            counts=counts,
            presence=np.packbits(self.presence, axis=0),
            tags=self.tags,
            **arrays,
        )
        return out.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Matched":
        with np.load(io.BytesIO(content), allow_pickle=False) as saved:
            owner, *guests = saved["names"].tolist()
            training, encode_only, reserve = (int(count) for count in saved["counts"])
            slots = {name: Slots(saved[f"train.{name}"], saved[f"test.{name}"]) for name in (*guests, owner)}
            presence = np.unpackbits(saved["presence"], axis=0, count=training + encode_only + reserve).astype(bool)
            return cls(owner, tuple(guests), slots, training, encode_only, reserve, presence, saved["tags"])


def matched(sets: Mapping[str, Tagged], owner: str, draw: np.random.Generator, reserve: int) -> Matched:
    """Slots for all tags of all guests, and for those of the owner's that a guest has."""
    guests = tuple(name for name in sets if name != owner)
    parts = {(name, part): tags for name, of in sets.items() for part, tags in of._asdict().items()}
    numbers, tags = _people(list(parts.values()))
    by_part = dict(zip(parts, numbers, strict=True))
    people = len(tags)
    _refuse_both(by_part, people)
    presence = np.zeros((people, len(guests)), bool)
    for place, name in enumerate(guests):
        for part in Tagged._fields:
            presence[by_part[name, part], place] = True
    known, tested = presence.any(axis=1), np.zeros(people, bool)
    for name in guests:
        tested[by_part[name, "test"]] = True
    train, test = np.flatnonzero(known & ~tested), np.flatnonzero(known & tested)
    count = len(train) + len(test) + reserve
    if count > MOST_SLOTS:
        raise UserError(f"{count} slots are needed, and there are {MOST_SLOTS}; align fewer rows, or keep less reserve")
    person = np.concatenate([draw.permutation(train), draw.permutation(test)])  # by slot
    slot = np.full(people, -1, np.int32)
    slot[person] = np.arange(len(person), dtype=np.int32)
    by_slot = np.zeros((count, len(guests)), bool)
    by_slot[: len(person)] = presence[person]
    slots = {name: Slots(slot[by_part[name, "train"]], slot[by_part[name, "test"]]) for name in sets}
    return Matched(owner, guests, slots, len(train), len(test), reserve, by_slot, tags[person])


def extended(before: Matched, later: Mapping[str, Tags], draw: np.random.Generator) -> Matched:
    """Slots for rows that came later: that of an equal tag, or one of the reserve. They are only ever encoded.

    What it returns has the slots of the later rows alone (as test rows), and the presence of all.
    """
    names = (*before.guests, before.owner)
    (old, *numbers), tags = _people([before.tags, *(later[name] for name in names)])
    slot = np.full(len(tags), -1, np.int32)
    slot[old] = np.arange(len(old), dtype=np.int32)
    wanting = np.zeros(len(tags), bool)
    for number in numbers[:-1]:
        wanting[number] = True
    wanting &= slot < 0
    used = int(wanting.sum())
    if used > before.reserve:
        raise UserError(
            f"{used} later rows need a slot of their own and the reserve has {before.reserve}; start a new run"
        )
    begin = len(before.tags)
    person = draw.permutation(np.flatnonzero(wanting))
    slot[person] = np.arange(begin, begin + used, dtype=np.int32)
    presence = before.presence.copy()
    for place, (name, number) in enumerate(zip(before.guests, numbers[:-1], strict=True)):
        again = int(presence[slot[number], place].sum()) + len(number) - len(np.unique(number))
        if again:
            raise UserError(
                f"{name}: {again} of {len(number)} later rows have an id that has a slot already; leave them out"
            )
        presence[slot[number], place] = True
    none = np.empty(0, np.int32)
    return Matched(
        before.owner,
        before.guests,
        {name: Slots(none, slot[number]) for name, number in zip(names, numbers, strict=True)},
        before.training,
        before.encode_only + used,
        before.reserve - used,
        presence,
        np.concatenate([before.tags, tags[person]]),
    )


def grouped(tags: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """An order in which equal rows of (n, bytes) follow each other, and where in it a new one begins.

    Tags are random, so that their first 8 bytes nearly always tell them apart: sorting those is many times faster.
    """
    words = np.ascontiguousarray(tags).view(np.uint64)
    order = np.argsort(words[:, 0])
    same_word = _repeats(words[order, 0])
    alike = np.flatnonzero(same_word)
    blocks = np.split(alike, range(_AT_ONCE, len(alike), _AT_ONCE))
    if all((words[order[block]] == words[order[block - 1]]).all() for block in blocks):
        return order, ~same_word
    order = np.lexsort(words.T)
    return order, ~_repeats(words[order])


def _repeats(x: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which entries are those before them."""
    same = np.zeros(len(x), bool)
    equal = x[1:] == x[:-1]
    same[1:] = equal if equal.ndim == 1 else equal.all(axis=1)
    return same


def _people(sets: list[Tags]) -> tuple[list[NDArray[np.intp]], Tags]:
    """For each set the person's number of each tag, and the tag of each person."""
    tags = np.concatenate(sets)
    order, begins = grouped(tags)
    number = np.empty(len(tags), np.intp)
    number[order] = np.cumsum(begins) - 1
    edges = np.cumsum([len(part) for part in sets])[:-1]
    return np.split(number, edges), tags[order[begins]]


def _refuse_both(by_part: dict[tuple[str, str], NDArray[np.intp]], people: int) -> None:
    """Raises where somebody is in one party's training rows and in another's test rows, or twice in one party's."""
    trained, tested = np.zeros(people, bool), np.zeros(people, bool)
    for (name, part), number in by_part.items():
        seen = np.zeros(people, bool)
        seen[number] = True
        double = len(number) - int(seen.sum())
        if double:
            raise UserError(
                f"{name}: {double} of {len(number)} tags of its {part} rows repeat another; each may occur once"
            )
        (trained if part == "train" else tested)[number] = True
    both = trained & tested
    count = int(both.sum())
    if count:
        trains, tests = (
            ", ".join(name for (name, part), number in by_part.items() if part == wanted and both[number].any())
            for wanted in ("train", "test")
        )
        raise UserError(
            f"{count} ids are in training rows (of {trains}) and in test rows (of {tests}); an id may be in one of them"
        )
