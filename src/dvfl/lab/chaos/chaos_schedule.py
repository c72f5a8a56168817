"""Who fails when in a chaos run: up/down chains of parties, brokers and links, drawn from a seed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from dvfl.errors import UserError, nearest
from dvfl.federation.party.settings import Federation
from dvfl.parties.numerics.randomness import numpy_generator

Kind = Literal["guest", "host", "broker", "owner", "connection"]
How = Literal["kill", "stop", "cut", "delay", "half-open"]
KINDS: tuple[Kind, ...] = get_args(Kind)

TICK_S = 1.0
_DELAYS_S = (0.05, 4.0)  # of a link; an answer over the slowest comes too late
_LINKS: tuple[How, ...] = ("cut", "delay", "half-open")


@dataclass(frozen=True)
class Strike:
    """One outage: it begins in tick `down` and is over in tick `up`; if that is the same one, at once."""

    kind: Kind
    entity: str  # a party's name; a broker has its host's, a link is `guest-1>host-2`
    how: How
    down: int
    up: int
    delay_s: float = 0.0  # of a delayed link


@dataclass(frozen=True)
class Wish:
    """What a chaos run is asked to do."""

    seed: int
    minutes: float
    kinds: tuple[Kind, ...]
    down: float  # R_d, of a tick
    up: float  # R_u, of a tick
    dead: tuple[str, ...] = ()  # who dies for good
    wait_minutes: float = 60.0  # for the result, once all outages are over

    @property
    def ticks(self) -> int:
        return round(60 * self.minutes / TICK_S)

    def check(self, federation: Federation) -> None:
        """Refuses what cannot be, and what could never end."""
        for name, rate in (("--down", self.down), ("--up", self.up)):
            if not 0 <= rate <= 1:
                raise UserError(f"{name} {rate:g}: a rate from 0 to 1 is right")
        if self.down > 0 and self.up == 0:
            raise UserError("--up 0: what fails would stay down; a rate above 0 is right, or --dead NAME for who dies")
        for name, minutes in (("--minutes", self.minutes), ("--wait", self.wait_minutes)):
            if not 0 < minutes < 1e5:
                raise UserError(f"{name} {minutes:g}: a number of minutes above 0 is right")
        guests, hosts, quorum = list(federation.guests), list(federation.hosts), federation.quorum
        for name in self.dead:
            if name == federation.owner:
                raise UserError(f"--dead {name}: nobody else has the labels, so the run would never end")
            if name not in guests + hosts:
                raise UserError(f"--dead {name}: no such guest or host{nearest(name, guests + hosts)}")
        for role, names, least in (("guests", guests, quorum.guests), ("hosts", hosts, quorum.hosts)):
            left = len(set(names) - set(self.dead))
            if left < least:
                raise UserError(f"--dead leaves {left} {role}, and the quorum in federation.toml is {least}")


def parse_kinds(text: str) -> tuple[Kind, ...]:
    """`guest,host` and the like, each once, in the order of `KINDS`."""
    given = [name.strip() for name in text.split(",") if name.strip()]
    for name in given:
        if name not in KINDS:
            raise UserError(f"--kinds: unknown kind '{name}'{nearest(name, KINDS)}")
    if not given:
        raise UserError(f"--kinds is empty; some of {', '.join(KINDS)} are right")
    return tuple(kind for kind in KINDS if kind in given)


def entities(federation: Federation, kinds: Iterable[Kind]) -> dict[Kind, list[str]]:
    """Everyone and everything of the kinds that can fail."""
    callers = [*federation.guests, federation.owner]
    everyone: dict[Kind, list[str]] = {
        "guest": list(federation.guests),
        "host": list(federation.hosts),
        "broker": list(federation.hosts),
        "owner": [federation.owner],
        "connection": [link(party, host) for party in callers for host in federation.hosts],
    }
    return {kind: everyone[kind] for kind in kinds}


def link(party: str, host: str) -> str:
    """The name of a link."""
    return f"{party}>{host}"


def draw_strikes(wish: Wish, struck: Mapping[Kind, Sequence[str]]) -> list[Strike]:
    """All outages of a run, in the order in which they begin.

    A live entity fails with R_d and a failed one returns with R_u. What happens in a tick is drawn from seed, kind,
    entity and tick alone, so one more kind or a longer run changes nothing of the rest.
    """
    found = [strike for kind, names in struck.items() for name in names for strike in _chain(wish, kind, name)]
    return sorted(found, key=lambda strike: (strike.down, KINDS.index(strike.kind), strike.entity))


def dead_from(seed: int, party: str) -> float:
    """How far in its training a party is that dies for good, as a part of its epochs."""
    return float(numpy_generator(seed, "chaos", "dead", party).uniform(0.2, 0.8))


def _chain(wish: Wish, kind: Kind, name: str) -> list[Strike]:
    seed, ticks = wish.seed, wish.ticks
    strikes: list[Strike] = []
    back = 0  # the tick from which it is up
    for tick in range(ticks):
        if tick < back:
            continue
        chance, choice, instant, latency = _luck(seed, kind, name, tick)
        if chance >= wish.down:
            continue
        how, delay_s = _how(kind, choice), 0.0
        if how == "delay":
            least, most = _DELAYS_S
            delay_s = round(least * (most / least) ** latency, 3)
        back = tick + 1
        if how == "kill" and instant < 1 / 3:
            strikes.append(Strike(kind, name, how, tick, tick))
            continue
        while back < ticks and _luck(seed, kind, name, back)[0] >= wish.up:
            back += 1
        strikes.append(Strike(kind, name, how, tick, back, delay_s))
        back += 1  # in the tick in which it returns it does not fail again
    return strikes


def _how(kind: Kind, choice: float) -> How:
    if kind == "connection":
        return _LINKS[int(choice * len(_LINKS))]
    return "stop" if kind != "broker" and choice < 1 / 3 else "kill"


def _luck(seed: int, kind: Kind, name: str, tick: int) -> list[float]:
    """Four numbers below 1: for the chain, the way, whether it is instant, the latency."""
    return cast(list[float], numpy_generator(seed, "chaos", kind, name, tick).random(4).tolist())
