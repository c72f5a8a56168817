"""What goes wrong in a replica, and how it is written on a command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from dvfl.errors import UserError, nearest
from dvfl.parties.faults.corruption import HOWS, PHASES, Corruption
from dvfl.parties.faults.lateness import Lateness
from dvfl.parties.faults.outages import Outages

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
