"""What goes wrong in a replica, and the up/down chains of crashing connections, guests and hosts.

A live one dies with R_d and a dead one rejoins with R_u; the draw precedes the request, and the new state decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.errors import UserError, nearest
from dvfl.parties.corruption import HOWS, PHASES, Corruption
from dvfl.parties.lateness import Lateness
from dvfl.parties.outages import Outages, Timetable
from dvfl.parties.randomness import numpy_generator

Kind = Literal["connection", "guest", "host"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_LATE = ("delay", "reorder", "duplicate")
_LATEST = 100_000  # rounds
_FORMS = {  # the fields of each kind, and an example of them
    "connection": ("R_d:R_u", "0.3:0.1"),
    "guest": ("R_d:R_u", "0.3:0.1"),
    "host": ("R_d:R_u", "0.3:0.1"),
    "recorded": ("FILE", "outages.csv"),
    "delay": ("D", "5"),
    "reorder": ("D", "5"),
    "duplicate": ("D", "5"),
    "corrupt": ("HOW:PHASE:GUEST", "sign:hosts:guest-1"),
}
_BLOCK = 1024  # requests whose luck is drawn together


@dataclass(frozen=True)
class Fault:
    """One kind of crash with its rates."""

    kind: Kind
    down: float  # R_d: a live one dies before its next request
    up: float  # R_u: a dead one rejoins before its next request

    def __str__(self) -> str:
        return ":".join([self.kind, *(repr(float(rate)).removesuffix(".0") for rate in (self.down, self.up))])


@dataclass(frozen=True)
class Faults:
    """Everything that goes wrong in one replica."""

    crashes: tuple[Fault, ...] = ()  # at most one of a kind
    outages: Outages | None = None
    lateness: Lateness | None = None
    corruption: Corruption | None = None

    def __post_init__(self) -> None:
        kinds = [crash.kind for crash in self.crashes]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"crashes of {', '.join(kinds)}: one of a kind is right")
        # Everything acts at once, so the order in which faults are given makes no difference.
        object.__setattr__(self, "crashes", tuple(sorted(self.crashes, key=lambda crash: KINDS.index(crash.kind))))
        if self.lateness == Lateness():
            object.__setattr__(self, "lateness", None)

    @staticmethod
    def parse(texts: Sequence[str], read: Callable[[str], Outages]) -> "Faults":
        """What `--faults` was given, such as `connection:0.3:0.1`; `read` opens the file of recorded outages."""
        crashes: list[Fault] = []
        outages, corruption = None, None
        late: dict[str, int] = {}
        seen: set[str] = set()
        for text in texts:
            try:
                kind, fields = _fields(text)
                if kind in seen:
                    raise UserError(f"{kind} is given twice")
                seen.add(kind)
                if kind == "recorded":
                    outages = read(fields[0])
                elif kind == "corrupt":
                    corruption = _corruption(*fields)
                elif kind in _LATE:
                    late[kind] = _rounds(fields[0])
                else:
                    crashes.append(_crash(cast(Kind, kind), *fields))
            except UserError as error:
                raise UserError(f"--faults {text}: {error}") from error
        return Faults(tuple(crashes), outages, Lateness(**late) if late else None, corruption)

    @property
    def texts(self) -> list[str]:
        """What `parse` reads as the same faults."""
        texts = [str(crash) for crash in self.crashes]
        if self.outages is not None:
            texts.append(f"recorded:{self.outages.source}")
        if self.lateness is not None:
            rounds = {name: getattr(self.lateness, name) for name in _LATE}
            texts += [f"{name}:{late}" for name, late in rounds.items() if late]
        if self.corruption is not None:
            texts.append(str(self.corruption))
        return texts

    def check(self, guests: Sequence[str], hosts: Sequence[str]) -> None:
        """Refuses names of parties that are not there."""
        if self.corruption is not None and self.corruption.guest not in guests:
            raise UserError(
                f"--faults {self.corruption}: there is no guest '{self.corruption.guest}'; guests: {', '.join(guests)}"
            )
        if self.outages is not None:
            known = {*guests, *hosts, *(f"{guest}>{host}" for guest in guests for host in hosts)}
            for party in self.outages.parties:
                if party not in known:
                    raise UserError(
                        f"--faults recorded:{self.outages.source}: there is no party '{party}';"
                        f" guests: {', '.join(guests)}; hosts: {', '.join(hosts)}; links are written guest>host"
                    )


NO_FAULTS = Faults()


class Chains:
    """The up/down states of all entities of one kind in all replicas; they start alive.

    Request number n of an entity has the n-th number of that entity's own generator, whoever else is asked.
    """

    def __init__(self, kind: Kind, faults: Sequence[Faults], seeds: Sequence[int], entities: Sequence[str]) -> None:
        if len(faults) != len(seeds):
            raise ValueError(f"{len(faults)} faults for {len(seeds)} replicas; one each is right")
        crashes = [{crash.kind: crash for crash in one.crashes}.get(kind, Fault(kind, 0, 0)) for one in faults]
        self._down = np.array([[crash.down] for crash in crashes], np.float32)  # (replicas, 1), as is the luck
        self._up = np.array([[crash.up] for crash in crashes], np.float32)
        self._kind, self._seeds, self._entities = kind, list(seeds), list(entities)
        self._recorded = Timetable([one.outages for one in faults], entities)
        shape = (len(seeds), len(entities))
        self._alive = np.ones(shape, bool)
        self._drawn = np.zeros(shape, np.int64)  # requests so far
        self._round = -1  # the last that was asked about

        self._crashing = np.flatnonzero(self._down > 0)  # replicas that need luck
        self._luck = np.zeros((len(self._crashing), len(entities), _BLOCK), np.float32)
        self._generators = self._seeded()
        row = np.zeros(len(seeds), np.int64)  # the others read any luck: none kills at a rate of 0
        row[self._crashing] = np.arange(len(self._crashing))
        self._first = (row[:, None] * len(entities) + np.arange(len(entities))) * _BLOCK
        self.active = bool(len(self._crashing)) or self._recorded.active

    def request(self, t: int, asked: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Whether each is alive for a request in round t: (replicas, entities).

        Only chains that are `asked` (None: all; broadcast to replicas x entities) move on; the others keep their state.
        """
        self._round = t
        if len(self._crashing):
            self._move(asked)
        self._drawn += 1 if asked is None else asked
        return self._alive & self._recorded.up(t) if self._recorded.active else self._alive.copy()

    def draw(self, start: int, count: int) -> NDArray[np.bool_]:
        """One request to everyone in each of the rounds start .. start + count - 1: (count, replicas, entities)."""
        states = np.empty((count, *self._alive.shape), bool)
        for number in range(count):
            states[number] = self.request(start + number)
        return states

    def gone(self) -> NDArray[np.bool_]:
        """Who will never be alive again, as of the last round asked about: (replicas, entities).

        Dead by its chain where R_u is 0, or recorded as down from then on.
        """
        gone: NDArray[np.bool_] = (~self._alive & (self._up == 0)) | self._recorded.gone(self._round)
        return gone

    def lost_for_good(self) -> NDArray[np.bool_]:
        """(replicas,) where nobody of this kind will ever be alive again, as of the last round asked about."""
        gone = self.gone()
        return np.logical_and(gone.all(1), gone.any(1))  # where there is nobody, nobody is lost

    def state(self) -> dict[str, Tensor]:
        """All that luck has decided so far."""
        return {
            "drawn": torch.from_numpy(self._drawn.copy()),
            "alive": torch.from_numpy(self._alive.copy()),
            "round": torch.tensor(self._round),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Goes on from where `state` was taken, with the luck that would have come next."""
        self._drawn, self._alive = state["drawn"].numpy().copy(), state["alive"].numpy().copy()
        self._round = int(state["round"])
        self._generators = self._seeded()
        begun = -(-self._drawn[self._crashing] // _BLOCK)  # (crashing replicas, entities)
        for index, blocks in np.ndenumerate(begun):
            for _ in range(blocks):
                self._refill(*index)

    def _move(self, asked: NDArray[np.bool_] | None) -> None:
        place = self._drawn % _BLOCK
        if not place.all():
            used_up = (place == 0) if asked is None else (place == 0) & asked
            for row, entity in np.argwhere(used_up[self._crashing]):
                self._refill(row, entity)
        luck = self._luck.reshape(-1)[self._first + place]
        moved = np.where(self._alive, luck >= self._down, luck < self._up)
        self._alive = moved if asked is None else np.where(asked, moved, self._alive)

    def _refill(self, row: int, entity: int) -> None:
        self._generators[row][entity].random(dtype=np.float32, out=self._luck[row, entity])

    def _seeded(self) -> list[list[np.random.Generator]]:
        return [
            [numpy_generator(self._seeds[replica], self._kind, entity) for entity in self._entities]
            for replica in self._crashing
        ]


def _fields(text: str) -> tuple[str, list[str]]:
    """The kind and its fields, as many as it has; the last, a file or a name, may itself hold colons."""
    kind, *rest = text.split(":", 1)
    if kind not in _FORMS:
        raise UserError(f"unknown kind '{kind}'{nearest(kind, _FORMS)}")
    form, example = _FORMS[kind]
    count = form.count(":") + 1
    open_ended = kind in ("recorded", "corrupt")
    fields = rest[0].split(":", count - 1 if open_ended else -1) if rest else []
    if len(fields) != count or not all(fields):
        raise UserError(f"{kind}:{form} is right, for example {kind}:{example}")
    return kind, fields


def _crash(kind: Kind, down: str, up: str) -> Fault:
    try:
        fault = Fault(kind, float(down), float(up))
    except ValueError:
        raise UserError("R_d and R_u are numbers from 0 to 1") from None
    if not (0 <= fault.down <= 1 and 0 <= fault.up <= 1):
        raise UserError("R_d and R_u lie between 0 and 1")
    return fault


def _rounds(text: str) -> int:
    try:
        rounds = int(text)
    except ValueError:
        raise UserError(f"D is a number of rounds from 1 to {_LATEST}") from None
    if not 1 <= rounds <= _LATEST:
        raise UserError(f"D lies between 1 and {_LATEST} rounds")
    return rounds


def _corruption(how: str, phase: str, guest: str) -> Corruption:
    if how not in HOWS:
        raise UserError(f"unknown way to corrupt '{how}'{nearest(how, HOWS)}")
    if phase not in PHASES:
        raise UserError(f"unknown phase '{phase}'{nearest(phase, PHASES)}")
    return Corruption(how, phase, guest)
