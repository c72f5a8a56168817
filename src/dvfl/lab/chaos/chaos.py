"""A practice federation that trains while a seed strikes its processes, brokers and links."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dvfl.errors import RunFailed
from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.party.settings import Federation
from dvfl.lab.chaos.chaos_folder import addresses, changed, hurried, make_fresh, redirected
from dvfl.lab.chaos.chaos_parties import Parties
from dvfl.lab.chaos.chaos_report import Timing, made_report
from dvfl.lab.chaos.chaos_schedule import TICK_S, Strike, Wish, dead_from, draw_strikes, entities
from dvfl.lab.chaos.chaos_writes import check_writes
from dvfl.lab.proxy import Proxy

Say = Callable[[str], None]

_LOOK_S = 0.25
_SAY_S = 30.0
_START_S = 180.0  # for all parties to be up and know the plan
_SETTLE_S = 60.0  # after the result, for all to be up again and hosts to freeze
# Others wait for a party that is dead for good until a deadline; those of a practice federation are long.
_SWEEP_S = 120.0
_PHASE1_S = 120.0  # beyond the minutes of outages
_COLLECT_S = 60.0


async def run_chaos(folder: Path, wish: Wish, *, again: bool, say: Say) -> dict[str, Any]:
    """Runs all parties of a fresh federation under seeded outages until the owner's result; the report."""
    supervisor = Supervisor(folder)
    federation = supervisor.federation
    wish.check(federation)
    make_fresh(folder, list(supervisor.roles), again=again)
    async with _links(folder, federation, wish) as links:
        with changed(_files(folder, federation, wish, links)):
            parties = Parties(supervisor, links)
            try:
                supervisor.start()
                timing = await _run(supervisor, parties, wish, say)
            finally:
                await asyncio.to_thread(supervisor.stop)
    say("reading all that the brokers acknowledged")
    writes = await check_writes(folder, federation, [host for host in federation.hosts if host not in wish.dead])
    return made_report(supervisor, wish, parties, writes, timing)


@asynccontextmanager
async def _links(folder: Path, federation: Federation, wish: Wish) -> AsyncIterator[dict[str, Proxy]]:
    """A proxy in every link, where links are to fail."""
    proxies: dict[str, Proxy] = {}
    try:
        if "connection" in wish.kinds:
            for name, address in addresses(folder, federation).items():
                proxies[name] = Proxy(address)
                await proxies[name].start()
        yield proxies
    finally:
        for proxy in proxies.values():
            await proxy.close()


def _files(folder: Path, federation: Federation, wish: Wish, links: dict[str, Proxy]) -> dict[Path, str]:
    """What the parties read otherwise than it stands there, as long as the run lasts."""
    texts: dict[Path, str] = {}
    if wish.dead:
        deadlines = federation.deadlines
        sweep_s = min(deadlines.sweep_s, _SWEEP_S)
        phase1_s = min(deadlines.phase1_s, 60 * wish.minutes + _PHASE1_S)
        texts |= hurried(folder, federation, replace(deadlines, sweep_s=sweep_s, phase1_s=phase1_s))
    if wish.dead or links:
        to = addresses(folder, federation) | {name: proxy.address for name, proxy in links.items()}
        texts |= redirected(folder, federation, to, _COLLECT_S if wish.dead else None)
    return texts


async def _run(supervisor: Supervisor, parties: Parties, wish: Wish, say: Say) -> Timing:
    """From the start of all parties to the owner's result."""
    started = time.monotonic()
    while not parties.working():
        if time.monotonic() - started > _START_S:
            raise RunFailed(f"after {_START_S:.0f} s not all parties were at work; their log.txt says why")
        await parties.look()
        await asyncio.sleep(_LOOK_S)
    began = time.monotonic()
    deadline = began + 60 * (wish.minutes + wish.wait_minutes)
    last = time.strftime("%H:%M:%S", time.localtime(time.time() + deadline - began))
    say(f"all are at work; outages for {wish.minutes:g} minutes, then the result is awaited until {last}")
    over = await _trouble(supervisor, parties, wish, say, deadline)
    done = time.monotonic()
    while time.monotonic() - done < _SETTLE_S and not (parties.working() and parties.frozen()):
        await parties.look()
        await asyncio.sleep(_LOOK_S)
    return Timing(began - started, over - began, done - began)


async def _trouble(supervisor: Supervisor, parties: Parties, wish: Wish, say: Say, deadline: float) -> float:
    """Strikes and lifts, tick by tick, until the result is there; when the last outage was over."""
    begins, ends = _by_tick(draw_strikes(wish, entities(supervisor.federation, wish.kinds)))
    active: set[Strike] = set()
    tick, due, said, over = 0, time.monotonic(), time.monotonic(), 0.0
    while not supervisor.result.exists():
        now = time.monotonic()
        if now > deadline:
            raise RunFailed(f"no result by the deadline; {parties.summary()}")
        if tick <= wish.ticks and now >= due:
            for strike in ends.get(tick, []):
                if strike in active:
                    active.discard(strike)
                    await parties.lift(strike)
            for strike in begins.get(tick, []):
                active.add(strike)
                await parties.strike(strike)
                if strike.up == strike.down:
                    active.discard(strike)
                    await parties.lift(strike)
            tick, due, over = tick + 1, max(due + TICK_S, now), now
        for party in wish.dead:
            if party not in parties.tally.dead and parties.progress(party) >= dead_from(wish.seed, party):
                parties.kill_for_good(party)
                say(f"{party} is dead for good, in epoch {parties.tally.dead[party]}")
        if now - said >= _SAY_S:
            said = now
            say(parties.summary())
        await parties.look()
        await asyncio.sleep(_LOOK_S)
    for strike in active:
        await parties.lift(strike)
    return over


def _by_tick(strikes: list[Strike]) -> tuple[dict[int, list[Strike]], dict[int, list[Strike]]]:
    begins: dict[int, list[Strike]] = {}
    ends: dict[int, list[Strike]] = {}
    for strike in strikes:
        begins.setdefault(strike.down, []).append(strike)
        if strike.up > strike.down:
            ends.setdefault(strike.up, []).append(strike)
    return begins, ends
