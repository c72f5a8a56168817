"""One session of an alignment: what guests say of themselves in it, and how the owner notices that it cannot go on."""

import hashlib
import json
import struct
from typing import Any, NamedTuple

from dvfl.align.errands import Errand
from dvfl.align.ids import IdRules, check_commitment
from dvfl.align.rows import Sizes
from dvfl.align.tasks import Storage, derived
from dvfl.errors import RunFailed, UserError

STAMP = 16  # bytes before every answer of a guest
_OPENED = struct.Struct("<32s32s32sQQ")


class Opened(NamedTuple):
    """What a guest says of itself in a session: commitments to its normalisation, its key and its ids, and sizes."""

    rules: bytes
    key: bytes
    ids: bytes
    sizes: Sizes

    def to_bytes(self) -> bytes:
        return _OPENED.pack(self.rules, self.key, self.ids, *self.sizes)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Opened":
        rules, key, ids, train, test = _OPENED.unpack(content)
        return cls(rules, key, ids, Sizes(train, test))

    @property
    def stamp(self) -> bytes:
        """Stands before every answer: a guest that has lost its key, or has other rows now, shows it by this."""
        return hashlib.blake2b(self.to_bytes(), digest_size=STAMP).digest()


class OwnerSession:
    """The owner's session: a number, from which all its randomness follows, and what each guest said of itself.

    A delta (`round` above 0) goes on in the session of round 0, with the same keys.
    """

    def __init__(
        self, guests: tuple[str, ...], rules: IdRules, storage: Storage, secret: bytes, round: int, own: bytes
    ) -> None:
        self.round = round
        self._guests, self._rules, self._storage, self._secret = guests, rules, storage, secret
        first = self._saved(0)
        if round and not self._saved(round - 1).get("done"):
            raise UserError("later rows can be aligned once the alignment before has finished; it has not")
        if round and first["own"]["guests"] != list(guests):
            raise UserError("the guests are not those of the first alignment; a new run is needed")
        self._keys = {name: Opened.from_bytes(bytes.fromhex(of)).key for name, of in first.get("opened", {}).items()}
        saved = first if round == 0 else self._saved(round)
        self.number: int = first.get("number", 0)
        self.opened = {name: Opened.from_bytes(bytes.fromhex(of)) for name, of in saved.get("opened", {}).items()}
        self.heard = {Errand(*of) for of in saved.get("heard", [])}  # what guests were told and have acknowledged
        self.done: bool = saved.get("done", False)
        self._own = {"ids": own.hex(), "guests": list(guests), "case": rules.case}
        self.changed = saved.get("own", self._own) != self._own  # the owner has other ids, guests or rules now
        if self.changed and self.done:
            raise UserError(
                "the owner's ids, guests or rules are not those that were aligned;"
                " align what came later by a delta, or start a new run"
            )
        self.unknown = set(guests) - set(self.opened)  # guests that must say, perhaps again, who they are
        if not self.changed:  # or what is held of the others would pass for theirs
            self.save()

    @property
    def salt(self) -> bytes:
        return self.derived("salt")[:32]

    def derived(self, *purpose: str | int) -> bytes:
        """64 bytes of their own for every purpose in this session."""
        return derived(self._secret, self.number, *purpose)

    def place(self, name: str, rounds_on: int = 0) -> str:
        """Where things of this round, or of another, are kept."""
        return f"align.{self.round + rounds_on}.{name}"

    def begin_again(self) -> None:
        """Another session, which shares nothing with this one; in a delta the same, with nothing heard yet."""
        self.number += self.round == 0
        self.opened.clear()
        self.heard.clear()
        self.unknown = set(self._guests)
        self.done = False
        self.save()

    def open(self, guest: str, answer: bytes) -> bool:
        """Takes what a guest says of itself; whether that goes together with what it said before."""
        if len(answer) != _OPENED.size:
            raise RunFailed(f"{guest}: an answer of {len(answer)} bytes, not {_OPENED.size}; is it of this version?")
        new = Opened.from_bytes(answer)
        check_commitment(new.rules, self._rules, self.salt, guest)
        if self.round and self._keys.get(guest) != new.key:
            raise UserError(f"{guest} has no longer the key of its first alignment; its later rows need a new run")
        if self.round and new.sizes.train:
            raise UserError(f"{guest}: rows that come later can only be encoded; give them as test rows")
        if self.opened.get(guest, new) != new:
            return False
        self.opened[guest] = new
        self.unknown.discard(guest)
        self.save()
        return True

    def body(self, guest: str, answer: bytes) -> bytes | None:
        """The answer proper; None where it is from a guest that is no longer what it said, which is asked anew."""
        if answer[:STAMP] != self.opened[guest].stamp:
            self.unknown.add(guest)
            return None
        return answer[STAMP:]

    def save(self) -> None:
        opened = {name: of.to_bytes().hex() for name, of in self.opened.items()}
        state = {
            "number": self.number,
            "own": self._own,
            "opened": opened,
            "heard": sorted(self.heard),
            "done": self.done,
        }
        self._storage.put(self.place("json"), json.dumps(state).encode())

    def _saved(self, round: int) -> dict[str, Any]:
        saved: dict[str, Any] = json.loads(self._storage.get(f"align.{round}.json") or b"{}")
        return saved
