"""The parties, brokers and links of a chaos run: struck down, brought back, and watched while they recover."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from dvfl.federation.local.supervisor import Supervisor
from dvfl.federation.party.lifecycle import STATUS
from dvfl.federation.transport.broker import server_pid
from dvfl.lab.chaos.chaos_resume import Resumption, saved_epoch
from dvfl.lab.chaos.chaos_schedule import Kind, Strike
from dvfl.lab.proxy import Proxy, Way

_DIAL_S = 0.5


@dataclass
class Tally:
    """What was done to them, and how they took it."""

    kills: dict[str, int] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=dict)
    links: dict[str, int] = field(default_factory=dict)  # by the way in which they failed
    instant: int = 0  # kills with a restart at once
    dead: dict[str, int] = field(default_factory=dict)  # for good, and in which epoch
    recovery_s: dict[str, list[float]] = field(default_factory=dict)
    longest_stop_s: float = 0.0  # of any party
    restarts: int = 0
    ended: list[str] = field(default_factory=list)  # parties that ended by themselves, with their last words


class Parties:
    """All of a federation here. What is struck stays down until it is brought back."""

    def __init__(self, supervisor: Supervisor, links: Mapping[str, Proxy]) -> None:
        self._supervisor, self._links = supervisor, links
        self.tally = Tally()
        self.killed: set[str] = set()  # parties that are down on purpose
        self._stopped: dict[str, float] = {}  # since when
        self._held: set[str] = set()  # hosts whose broker is kept down
        # What is coming back since when, on the loop's clock and on the wall.
        self._returning: dict[tuple[Kind, str], tuple[float, float]] = {}
        self._ended: set[int] = set()  # processes that ended by themselves
        self._resumptions = {party: Resumption(party) for party in supervisor.roles}
        self._seen: dict[str, int] = {}  # when a party's status was last written
        self.statuses: dict[str, dict[str, Any]] = {}

    async def strike(self, strike: Strike) -> None:
        """Makes one fail; who or what is not there cannot."""
        kind, name, instant = strike.kind, strike.entity, strike.up == strike.down
        if kind == "connection":
            self._returning.pop((kind, name), None)
            await self._links[name].fail(_way(strike), strike.delay_s)
            _count(self.tally.links, strike.how)
        elif kind == "broker":
            self._held.add(name)
            if self._end_broker(name):
                _count(self.tally.kills, kind)
                self.tally.instant += instant
        elif strike.how == "stop":
            self._stop(kind, name)
        elif self._kill(kind, name):
            self.tally.instant += instant

    async def lift(self, strike: Strike) -> None:
        """Brings back what a strike took."""
        kind, name = strike.kind, strike.entity
        if kind == "connection":
            await self._links[name].mend()
            self._await_return(kind, name)
        elif kind == "broker":
            self._held.discard(name)
            self._await_return(kind, name)
        elif strike.how == "stop":
            self._go_on(kind, name)
        elif name in self.killed and name not in self.tally.dead:
            self._start_again(kind, name)

    def kill_for_good(self, party: str) -> None:
        """A party that never comes back."""
        self._stopped.pop(party, None)
        if party not in self.killed:
            self._kill(cast(Kind, self._supervisor.roles[party]), party)
        self.tally.dead[party] = self.statuses.get(party, {}).get("epoch", 0)

    async def look(self) -> None:
        """Takes note of how they are doing, keeps down what is down, starts again who died by itself."""
        for party in self._supervisor.roles:
            self._read(party)
        for host in self._held:
            self._end_broker(host)
        for party, process in self._supervisor.processes.items():
            if process.poll() is not None and party not in self.killed and process.pid not in self._ended:
                self._ended.add(process.pid)
                self.tally.ended.append(f"{party}: {self._supervisor.last_words(party)}")
        self._supervisor.watch(self.killed)
        for (kind, name), (since, wall) in list(self._returning.items()):
            if await self._works(kind, name, since, wall):
                took = asyncio.get_running_loop().time() - since
                self.tally.recovery_s.setdefault(kind, []).append(round(took, 2))
                del self._returning[kind, name]

    def not_resumed(self) -> list[str]:
        """Restarts after which a party was not where it had been."""
        return [wrong for resumption in self._resumptions.values() for wrong in resumption.wrong]

    def working(self) -> bool:
        """Whether all processes that should be there have said so, and know the plan."""
        return all(
            self.statuses.get(party, {}).get("pid") == process.pid and self.statuses[party]["state"] != "waiting"
            for party, process in self._supervisor.processes.items()
            if party not in self.killed
        )

    def frozen(self) -> bool:
        """Whether all hosts that should be there have frozen."""
        hosts = [host for host in self._supervisor.federation.hosts if host not in self.killed]
        return all(self.statuses[host]["state"] == "frozen" for host in hosts)

    def summary(self) -> str:
        """One line on what was done and how they are."""
        kills, stops, links = (sum(one.values()) for one in (self.tally.kills, self.tally.stops, self.tally.links))
        parties = [self._summed_up(party) for party in self._supervisor.roles]
        return f"{kills} kills, {stops} stops, {links} failures of links; {', '.join(parties)}"

    def progress(self, party: str) -> float:
        """Which part of its epochs a party has behind it."""
        status = self.statuses.get(party, {})
        return float(status["epoch"] / status["epochs"]) if status.get("epochs") else 0.0

    def _summed_up(self, party: str) -> str:
        status = self.statuses.get(party, {})
        state = "dead" if party in self.killed else "stopped" if party in self._stopped else status.get("state", "new")
        return f"{party} {state} {status.get('epoch', 0)}/{status.get('epochs', 0)}"

    def _kill(self, kind: Kind, party: str) -> bool:
        """Whether there was a process to kill."""
        process = self._supervisor.processes[party]
        if party in self.killed or process.poll() is not None:
            return False
        process.kill()
        process.wait()
        self.killed.add(party)
        self._forget(party)
        _count(self.tally.kills, kind)
        return True

    def _stop(self, kind: Kind, party: str) -> None:
        process = self._supervisor.processes[party]
        if party in self.killed or process.poll() is not None:
            return
        process.send_signal(signal.SIGSTOP)
        self._stopped[party] = time.monotonic()
        self._forget(party)
        _count(self.tally.stops, kind)

    def _go_on(self, kind: Kind, party: str) -> None:
        since = self._stopped.pop(party, None)
        if since is None or self._supervisor.processes[party].poll() is not None:
            return
        self._supervisor.processes[party].send_signal(signal.SIGCONT)
        stopped = round(time.monotonic() - since, 2)
        self.tally.longest_stop_s = max(stopped, self.tally.longest_stop_s)
        self._await_return(kind, party)

    def _start_again(self, kind: Kind, party: str) -> None:
        self.killed.discard(party)
        self._resumptions[party].starts(saved_epoch(self._supervisor.folder / party))
        self._supervisor.start_party(party)
        self.tally.restarts += 1
        self._await_return(kind, party)

    def _end_broker(self, host: str) -> bool:
        """Only that of a host which was started here, whose child it is."""
        pid = server_pid(self._home(host))
        if pid is None or self._supervisor.processes[host].poll() is not None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._returning.pop(("broker", host), None)
            return True
        return False

    def _forget(self, party: str) -> None:
        """Nothing that rests on a party can be seen to come back while the party is down."""
        for key in [key for key in self._returning if party in key[1].split(">")]:
            del self._returning[key]

    def _await_return(self, kind: Kind, name: str) -> None:
        if not any(party in self.killed or party in self._stopped for party in name.split(">")):
            self._returning[kind, name] = asyncio.get_running_loop().time(), time.time()

    async def _works(self, kind: Kind, name: str, since: float, wall: float) -> bool:
        if kind == "connection":
            return self._links[name].heard > since
        if kind == "broker":
            return server_pid(self._home(name)) is not None and await self._answers(name)
        process = self._supervisor.processes[name]
        return self._seen.get(name, 0) > wall * 1e9 and self.statuses[name].get("pid") == process.pid

    async def _answers(self, host: str) -> bool:
        with suppress(OSError, ValueError, KeyError):
            config = json.loads((self._home(host) / "broker.conf").read_text())
            async with asyncio.timeout(_DIAL_S):
                _, writer = await asyncio.open_connection(config["host"], config["port"])
            writer.close()
            return True
        return False

    def _read(self, party: str) -> None:
        path = self._supervisor.folder / party / STATUS
        with suppress(OSError, ValueError):
            written = path.stat().st_mtime_ns
            if written == self._seen.get(party):
                return
            status: dict[str, Any] = json.loads(path.read_text())
            self._seen[party], self.statuses[party] = written, status
            if party in self.killed or status["pid"] != self._supervisor.processes[party].pid:
                return
            self._resumptions[party].said(status.get("epoch"))

    def _home(self, host: str) -> Path:
        return self._supervisor.folder.absolute() / host / "broker"


def _way(strike: Strike) -> Way:
    assert strike.how != "kill" and strike.how != "stop"
    return strike.how


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1
