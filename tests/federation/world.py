"""A federation in one thread, on a clock, network and disk that a seed drives: the very parties and services.

Processes are killed without a word, links cut, brokers stopped and emptied; the same seed gives the same history.
"""

import asyncio
import copy
import random
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from dvfl.federation.guest import GuestParty
from dvfl.federation.guest_service import GuestService
from dvfl.federation.host import HostParty
from dvfl.federation.host_service import HostService
from dvfl.federation.line import REQUEST_S, Post
from dvfl.federation.owner import OwnerParty
from dvfl.federation.owner_service import OwnerService
from dvfl.federation.owner_training import Labels, OwnerSettings
from dvfl.federation.plan import Plan, PlannedGuest
from dvfl.federation.storage import Checkpoint, TableArrays
from dvfl.federation.wire import Encodings, decode
from dvfl.parties.learner import Adam

Result = TypeVar("Result")
EPOCH_MS = 1_700_000_000_000  # what the wall clocks show when a world begins
KEPT = 60  # messages that a guest's stream holds


class _NoWaiting(selectors.BaseSelector):
    """Nothing ever comes from outside, so instead of waiting, time passes."""

    def __init__(self, passed: Callable[[float], None]) -> None:
        self._passed = passed

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everybody waits and nothing is due: a deadlock")
        self._passed(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return selectors.SelectorKey(fileobj, 0, 0, None)

    def get_map(self) -> dict[Any, Any]:
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing that is due."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_NoWaiting(self._pass))

    def time(self) -> float:
        return self.now

    def _pass(self, seconds: float) -> None:
        self.now += seconds


class MemoryStorage:
    """A disk that outlives processes."""

    def __init__(self) -> None:
        self.checkpoint: Checkpoint | None = None
        self.tables: dict[str, TableArrays] = {}
        self.blobs: dict[str, bytes] = {}

    def load(self) -> Checkpoint | None:
        return copy.deepcopy(self.checkpoint)

    def save(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = copy.deepcopy(checkpoint)

    def table(self, name: str, slots: int, width: int) -> tuple[TableArrays, bool]:
        whole = name in self.tables and self.tables[name].values.shape == (slots, width)
        if not whole:
            values = np.zeros((slots, width), np.float32)
            self.tables[name] = TableArrays(values, np.zeros(slots, np.int64), np.zeros(slots, np.int64))
        return self.tables[name], whole

    def put(self, name: str, content: bytes) -> None:
        self.blobs[name] = content

    def get(self, name: str) -> bytes | None:
        return self.blobs.get(name)

    def drop(self, prefix: str) -> None:
        self.blobs = {name: blob for name, blob in self.blobs.items() if not name.startswith(prefix)}

    def close(self) -> None:
        pass


@dataclass
class Broker:
    """One host's broker: streams that survive it unless its store is lost."""

    up: bool = True
    served: dict[str, Callable[[bytes], Awaitable[bytes]]] = field(default_factory=dict)  # by the host's live process
    streams: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    identity: int = 1
    acknowledged: list[tuple[str, bytes]] = field(default_factory=list)

    def publish(self, guest: str, data: bytes) -> None:
        stream = self.streams.setdefault(guest, [])
        stream.append((stream[-1][0] + 1 if stream else 1, data))
        del stream[:-KEPT]
        self.acknowledged.append((guest, data))

    def lose(self) -> None:
        self.streams, self.identity = {}, self.identity + 1


class Table:
    """A guest's rows in memory."""

    def __init__(self, values: NDArray[np.float32], slots: NDArray[np.int32]) -> None:
        self._values, self.slots = values, slots
        self.rows, self.width = values.shape
        self.schema: dict[str, Any] = {}

    def take(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        return self._values[rows]


def plan_key() -> Ed25519PrivateKey:
    """The owner's, of every world."""
    return Ed25519PrivateKey.from_private_bytes(bytes(32))


class World:
    """Parties, brokers and links. `luck` decides delays; what goes wrong is the caller's to say."""

    def __init__(self, seed: int, *, guests: int = 3, hosts: int = 2, **change: Any) -> None:
        self.luck = random.Random(seed)
        self.guests = [f"guest-{number + 1}" for number in range(guests)]
        self.hosts = [f"host-{number + 1}" for number in range(hosts)]
        self._key = plan_key()
        self._data(np.random.default_rng(7))
        self.plan = self._plan(**change)
        self.brokers = {host: Broker() for host in self.hosts}
        self.links = {(party, host): True for party in [*self.guests, "owner"] for host in self.hosts}
        self.disks: dict[str, MemoryStorage] = {name: MemoryStorage() for name in self.names}
        self.running: dict[str, asyncio.Task[None]] = {}
        self.parties: dict[str, Any] = {}
        self.failed: dict[str, Exception] = {}
        self.finished = 0
        self.said: list[str] = []  # what parties logged
        self.to_guests: list[bytes] = []  # every message that a guest was sent
        self.stops = {name: asyncio.Event() for name in self.names}

    @property
    def names(self) -> list[str]:
        return [*self.guests, *self.hosts, "owner"]

    @property
    def owner(self) -> OwnerParty:
        found: OwnerParty = self.parties["owner"]
        return found

    def now_ms(self) -> int:
        return EPOCH_MS + round(1000 * asyncio.get_running_loop().time())

    def awake_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def work(self, task: Callable[[], Result]) -> Result:
        await asyncio.sleep(self.luck.uniform(0.001, 0.05))
        return task()

    def start(self, name: str) -> None:
        """A process begins, on whatever its disk has."""
        if name in self.running and not self.running[name].done():
            return
        self.running[name] = asyncio.get_running_loop().create_task(self._live(name))

    def kill(self, name: str) -> None:
        """A process ends between two instructions."""
        if name in self.running:
            self.running.pop(name).cancel()
        if name in self.brokers:
            self.brokers[name].served = {}

    def start_twin(self, name: str) -> None:
        """A second process on a copy of the folder; the first goes on."""
        self.running.pop(name)
        self.disks[name] = copy.deepcopy(self.disks[name])
        self.start(name)

    def lose_disk(self, name: str) -> None:
        self.kill(name)
        self.disks[name] = MemoryStorage()

    async def _live(self, name: str) -> None:
        try:
            await self._service(name).run(self.stops[name])
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.failed[name] = error

    def _service(self, name: str) -> GuestService | HostService | OwnerService:
        disk, public = self.disks[name], self._key.public_key()
        if name == "owner":
            owner = OwnerParty(
                name,
                self.labels[0],
                self.labels[1],
                OwnerSettings(epochs=20, batch=16, dropout=0.1),
                self.plan,
                self._key,
                disk,
                collect_deadline_s=60,
                now_ms=self.now_ms(),
                log=self.said.append,
            )
            self.parties[name] = owner
            return OwnerService(owner, {host: _OwnerLine(self, host) for host in self.hosts}, self, self._count)
        if name in self.brokers:
            host = self.parties[name] = HostParty(
                name, disk, public, federation="f" * 64, now_ms=self.now_ms(), log=self.said.append
            )
            return HostService(host, self.guests, _HostLine(self, name), self)
        table, test = self.tables[name]
        lineage = self.luck.getrandbits(62)
        guest = GuestParty(
            name,
            table,
            test,
            disk,
            public,
            federation="f" * 64,
            now_ms=self.now_ms(),
            log=self.said.append,
            lineage=lineage,
        )
        self.parties[name] = guest
        return GuestService(guest, {host: _GuestLine(self, name, host) for host in self.hosts}, self)

    def _count(self, owner: OwnerParty) -> None:
        self.finished += 1

    def _data(self, rng: np.random.Generator) -> None:
        train, test, width = 48, 16, 5
        y = rng.integers(2, size=train + test)
        self.tables, slots = {}, rng.permutation(train).astype(np.int32)
        apart = (train + rng.permutation(test)).astype(np.int32)
        for name in self.guests:
            x = (rng.normal(size=(train + test, width)) + 2 * y[:, None]).astype(np.float32)
            order = rng.permutation(train)
            self.tables[name] = Table(x[:train][order], slots[order]), Table(x[train:], apart)
        classes = ("no", "yes")
        self.labels = Labels(slots, y[:train], classes), Labels(apart, y[train:], classes)

    def _plan(self, **change: Any) -> Plan:
        values: dict[str, Any] = {
            "run": "0" * 32,
            "federation": "f" * 64,
            "seed": 0,
            "guests": tuple(PlannedGuest(name, 5, unit=False) for name in self.guests),
            "hosts": tuple(self.hosts),
            "rule": "table",
            "w_g": 4 * len(self.guests),
            "w_h": 6,
            "batch": 16,
            "guest_epochs": 3,
            "period": 1,
            "host_epochs": 4,
            "guest_rule": Adam(1e-2),
            "host_rule": Adam(1e-2),
            "guest_schedule": "constant",
            "host_schedule": "constant",
            "guest_noise": 0.1,
            "guest_dropout": 0.1,
            "slots": 48,
            "encode_slots": 16,
            "quorum_hosts": 1,
            "quorum_guests": 1,
            "stall_s": 20.0,
            "sweep_deadline_s": 60.0,
            "phase1_deadline_s": 600.0,
        }
        return Plan(**{**values, **change})

    async def carried(self, party: str, host: str) -> bool:
        """A message on its way; whether it gets there."""
        await asyncio.sleep(self.luck.uniform(0.0005, 0.05))
        return self.links[party, host] and self.brokers[host].up

    async def asked(self, party: str, host: str, subject: str, data: bytes) -> bytes | None:
        """A request and its answer, or none in time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        if await self.carried(party, host):
            serve = self.brokers[host].served.get(subject)
            if serve is not None:
                answer = await serve(data)
                back = await self.carried(party, host)
                if back and self.brokers[host].served.get(subject) is serve and loop.time() - began < REQUEST_S:
                    return answer
        await asyncio.sleep(max(0.0, began + REQUEST_S - loop.time()))
        return None


@dataclass
class _GuestLine:
    world: World
    guest: str
    host: str

    async def hello(self, data: bytes) -> bytes | None:
        answer = await self.world.asked(self.guest, self.host, f"hello.{self.guest}", data)
        if answer is not None:
            self.world.to_guests.append(answer)
        return answer

    async def push(self, data: bytes) -> bool:
        if not await self.world.carried(self.guest, self.host):
            return False
        broker = self.world.brokers[self.host]
        for _ in range(2 if self.world.luck.random() < 0.05 else 1):  # a repeated message
            broker.publish(self.guest, data)
        return await self.world.carried(self.guest, self.host)

    async def flushed(self) -> bool:
        return True


@dataclass
class _HostLine:
    world: World
    host: str

    async def fetch(self, guest: str, stream: str, sequence: int) -> Post | None:
        await asyncio.sleep(self.world.luck.uniform(0.001, 0.2))
        broker = self.world.brokers[self.host]
        if not broker.up:
            return None
        identity, held = str(broker.identity), broker.streams.get(guest, [])
        after = sequence if stream == identity else 0
        new = [(number, data) for number, data in held if number > after][:5]
        return Post(identity, new, gap=bool(new) and new[0][0] > after + 1)

    async def serve(self, subject: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self.world.brokers[self.host].served[subject] = answer


@dataclass
class _OwnerLine:
    world: World
    host: str

    async def tell(self, data: bytes) -> bytes | None:
        return await self.world.asked("owner", self.host, "owner.tell", data)

    async def collect(self, data: bytes) -> bytes | None:
        return await self.world.asked("owner", self.host, "owner.collect", data)


def simulate(story: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Runs a story to its end on a clock of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(story())
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()


def unapplied(world: World) -> list[str]:
    """Acknowledged writes that are neither in their host's table nor superseded there by newer ones."""
    lost = []
    for host, broker in world.brokers.items():
        for guest, data in broker.acknowledged:
            message = decode(data, Encodings)
            assert isinstance(message, Encodings)
            known = world.parties[host].guests[guest]
            repeated = message.sweep is not None and known.whole and known.sweep == message.sweep.encoder
            if message.lineage != world.parties[guest].lineage or repeated:  # a whole sweep is the same however often
                continue
            table = world.disks[host].tables[guest]
            stamps = list(zip(table.incarnations[message.slots], table.steps[message.slots], strict=True))
            if min(stamps) < (message.incarnation, message.epoch << 32 | message.iteration):
                lost.append(f"{host}: {guest} {message.epoch}.{message.iteration}")
    return lost
