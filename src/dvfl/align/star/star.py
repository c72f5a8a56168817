"""Each guest's rows with the owner's by two-party private set intersection; guests are its servers.

Who is common to a guest and the owner is told to the guest, under hashes of the ids, with the slots.
"""

from dataclasses import replace

import numpy as np

from dvfl.align.errands import Errand, Errands
from dvfl.align.ids import IdRules
from dvfl.align.matching import Matched, Tagged, Tags, extended, matched
from dvfl.align.owner import HELD, AligningOwner
from dvfl.align.rows import DIGEST, Rows, ShuffledRows
from dvfl.align.sessions import OwnerSession
from dvfl.align.star.intersection import ELEMENT, BadElement, intersection, library, psi_key, requested
from dvfl.align.star.star_guest import OBJECTIONS, GuestStar
from dvfl.align.star.star_slots import packed
from dvfl.align.tasks import Owner, Progress, Storage, Task, kept_secret
from dvfl.errors import RunFailed, UserError


def star_owner(
    name: str,
    rows: Rows,
    guests: tuple[str, ...],
    rules: IdRules,
    storage: Storage,
    *,
    secret: bytes,  # 32 fresh random bytes; those of an earlier start are kept
    reserve: int = 0,  # slots for rows that come later
    pad: int = 1,  # its own sizes are rounded up to multiples of it
    threads: int = 1,
    round: int = 0,  # of a delta, which uses the keys of round 0
) -> Owner:
    """The owner's side; `rows` are the ids of its labels. In a delta they meet the guests' later rows alone."""
    library()
    kept = kept_secret(storage, secret)
    way = _OwnerStar(name, rows, ShuffledRows(rows, kept, pad, name), guests, storage, reserve, threads)
    own_ids = way.rows.digest
    return AligningOwner(name, guests, rules, storage, way, secret=kept, fresh=secret, round=round, own_ids=own_ids)


class _OwnerStar:
    """Requests, the same for all guests; what each guest offers and responds; and then who is common."""

    def __init__(
        self,
        name: str,
        ids: Rows,
        rows: ShuffledRows,
        guests: tuple[str, ...],
        storage: Storage,
        reserve: int,
        threads: int,
    ) -> None:
        self.rows, self._ids = rows, ids
        self._name, self._guests, self._storage, self._reserve, self._threads = name, guests, storage, reserve, threads
        self._held: set[Errand] = set()
        self._total = 0

    @property
    def progress(self) -> Progress:
        return Progress(len(self._held), self._total)

    def begin(self, session: OwnerSession, errands: Errands) -> None:
        self._session, self._errands = session, errands
        self._key = psi_key(session.derived("psi key"))
        self._sizes = {guest: session.opened[guest].sizes for guest in self._guests}
        self._pieces = {guest: sizes.pieces(GuestStar.chunk) for guest, sizes in self._sizes.items()}
        self._pieces[self._name] = self.rows.sizes.pieces(GuestStar.chunk)
        requests = range(len(self._pieces[self._name]))
        first = {Errand("request", self._name, part) for part in requests} | {
            Errand("offer", guest, part) for guest in self._guests for part in range(len(self._pieces[guest]))
        }
        later = {Errand("multiply", guest, part) for guest in self._guests for part in requests}
        last = {Errand("intersect", guest) for guest in self._guests}
        self._total = len(first) + len(later) + len(last)
        self._held = {one for one in first | later | last if self._storage.get(self._place(one)) is not None}
        for one in sorted(first - self._held):
            self._errands.add(one.about, one)
        for one in sorted(later - self._held):
            if Errand("request", self._name, one.part) in self._held:
                self._errands.add(one.about, one)
        for guest in self._guests:
            self._intersect_if_complete(guest)

    def task(self, errand: Errand) -> tuple[str, int, bytes]:
        if errand.kind == "multiply":
            return "multiply", errand.part, self._get(Errand("request", self._name, errand.part))
        if errand.kind == "intersect":
            return "intersect", self._guests.index(errand.about), b""
        return errand.kind, errand.part, b""

    def take(self, party: str, errand: Errand, body: bytes) -> None:
        if errand.kind == "intersect":
            if not body:
                raise RunFailed(f"{errand.about}: answers with elements that are not on the curve")
        else:
            start, stop = self._pieces[errand.about if errand.kind == "offer" else self._name][errand.part]
            if len(body) != (stop - start) * ELEMENT:
                raise RunFailed(f"{party}: an answer of {len(body)} bytes of elements, not {(stop - start) * ELEMENT}")
        self._storage.put(self._place(errand), body)
        self._held.add(errand)
        if errand.kind == "request":
            for guest in self._guests:
                self._errands.add(guest, Errand("multiply", guest, errand.part))
        elif errand.kind != "intersect":
            self._intersect_if_complete(party)

    def answer(self, task: Task) -> bytes:
        if task.kind == "request":
            return requested(self._key, self.rows.ids(*self._pieces[self._name][task.number]), self._threads)
        offers, responses = self._needed(self._guests[task.number])
        try:
            common = intersection(
                self._key, [self._get(one) for one in offers], [self._get(one) for one in responses], self._threads
            )
        except BadElement:
            return b""
        return b"+" + np.array(common, np.int64).tobytes()

    def match(self) -> Matched:
        own, train = self._own_tags(), self.rows.sizes.train
        sets = {guest: self._tags(guest, own) for guest in self._guests}
        sets[self._name] = Tagged(own[:train], own[train:])
        key = int.from_bytes(self._session.derived("slots", self._session.round)[:16], "little")
        draw = np.random.Generator(np.random.Philox(key=key))
        if self._session.round == 0:
            result = matched(sets, self._name, draw, self._reserve)
        else:
            before = self._storage.get(self._session.place("matched", -1)) or b""
            result = extended(Matched.from_bytes(before), {party: of.test for party, of in sets.items()}, draw)
        own_slots = self.rows.in_order(np.concatenate(result.slots[self._name]))
        return replace(result, slots=result.slots | {self._name: own_slots})

    def parts(self, guest: str, result: Matched, session: OwnerSession) -> list[bytes]:
        own, theirs = np.concatenate(result.slots[self._name]), np.concatenate(result.slots[guest])
        # In a delta rows may be trained on elsewhere, and only be encoded here.
        training = result.training if session.round == 0 else 0
        return packed(self._ids, own, theirs, training, session.salt)

    def told(self, guest: str, body: bytes) -> None:
        if len(body) != OBJECTIONS.size:
            raise RunFailed(f"{guest}: an answer of {len(body)} bytes to its slots, not {OBJECTIONS.size}")
        (both,) = OBJECTIONS.unpack(body)
        if both:
            self._refuse_both(guest, both)

    def _intersect_if_complete(self, guest: str) -> None:
        errand = Errand("intersect", guest)
        offers, responses = self._needed(guest)
        if errand not in self._held and self._held.issuperset([*offers, *responses]):
            self._errands.add(self._name, errand)

    def _needed(self, guest: str) -> tuple[list[Errand], list[Errand]]:
        """What the guest offers, and its responses."""
        return (
            [Errand("offer", guest, part) for part in range(len(self._pieces[guest]))],
            [Errand("multiply", guest, part) for part in range(len(self._pieces[self._name]))],
        )

    def _own_tags(self) -> Tags:
        """The same for the same id in every round."""
        tags = np.zeros((sum(self.rows.sizes), 32), np.uint8)
        tags[:, :DIGEST] = self.rows.digests()
        return tags

    def _tags(self, guest: str, own: Tags) -> Tagged:
        """The owner's tags of those who are common, and others for the rest, which nobody else has."""
        common = np.frombuffer(self._get(Errand("intersect", guest))[1:], np.int64)
        split = int(np.searchsorted(common, self.rows.sizes.train))
        made, tags = 0, []
        for places, size in zip((common[:split], common[split:]), self._sizes[guest], strict=True):
            rest = size - len(places)
            if rest < 0:
                self._refuse_both(guest, -rest)
            alone = np.zeros((rest, 4), np.uint64)
            number = (self._session.round * len(self._guests) + self._guests.index(guest) + 1) << 40
            alone[:, 0] = np.arange(number + made, number + made + rest, dtype=np.uint64)
            made += rest
            tags.append(np.concatenate([own[places], alone.view(np.uint8)]))
        return Tagged(*tags)

    def _refuse_both(self, guest: str, both: int) -> None:
        raise UserError(
            f"{both} ids or more are in training rows of {guest} or {self._name} and in test rows of the other;"
            " an id may be in one of them"
        )

    def _get(self, errand: Errand) -> bytes:
        held = self._storage.get(self._place(errand))
        if held is None:
            raise RunFailed(f"{self._name}: what was held of {errand.about} is gone from the disk; align again")
        return held

    def _place(self, errand: Errand) -> str:
        return self._session.place(f"{HELD}{errand.kind}.{errand.about}.{errand.part}")
