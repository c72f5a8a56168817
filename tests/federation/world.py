"""A federation in one thread, on a clock, network and disk that a seed drives: the very parties and services.

Processes are killed without a word, links cut, brokers stopped and emptied; the same seed gives the same history.
"""

import asyncio
import copy
import json
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from subject import Size, Table, rows_and_labels, training_plan
from torch import Tensor
from virtual_loop import Result

from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.guest.guest_service import GuestService
from dvfl.federation.host.host import HostParty
from dvfl.federation.host.host_service import HostService
from dvfl.federation.owner.owner import OwnerParty
from dvfl.federation.owner.owner_service import OwnerService
from dvfl.federation.party.endings import Fenced
from dvfl.federation.party.owner_settings import OwnerSettings
from dvfl.federation.party.storage import Checkpoint, TableArrays
from dvfl.federation.transport.line import REQUEST_S, Post, Traffic
from dvfl.parties.numerics.learner import Adam

Answer = Callable[[bytes], Coroutine[Any, Any, bytes]]
EPOCH_MS = 1_700_000_000_000  # what the wall clocks show when a world begins
NO_TRAFFIC = Traffic(0, 0)  # nobody counts bytes here
KEPT = 60  # messages that a guest's stream holds


class MemoryStorage:
    """A disk that outlives processes."""

    def __init__(self) -> None:
        self._saved: tuple[dict[str, Tensor], str] | None = None
        self.tables: dict[str, TableArrays] = {}
        self.blobs: dict[str, bytes] = {}

    def load(self) -> Checkpoint | None:
        if self._saved is None:
            return None
        tensors, values = self._saved
        return Checkpoint({name: tensor.clone() for name, tensor in tensors.items()}, json.loads(values))

    def save(self, checkpoint: Checkpoint) -> None:
        tensors = {name: tensor.clone() for name, tensor in checkpoint.tensors.items()}
        self._saved = tensors, json.dumps(checkpoint.values)  # as on a real disk

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
    served: dict[str, Answer] = field(default_factory=dict)  # by the host's live process
    streams: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    identity: int = 1
    acknowledged: list[tuple[str, bytes]] = field(default_factory=list)
    read: dict[str, int] = field(default_factory=dict)  # how far any process of the host was seen to have read
    answering: list[asyncio.Task[bytes]] = field(default_factory=list)  # in order: a set's would be another every time

    def publish(self, guest: str, data: bytes) -> None:
        stream = self.streams.setdefault(guest, [])
        stream.append((stream[-1][0] + 1 if stream else 1, data))
        del stream[:-KEPT]
        self.acknowledged.append((guest, data))

    def lose(self) -> None:
        self.streams, self.identity, self.read = {}, self.identity + 1, {}

    def desert(self) -> None:
        """The host's process is gone, and with it its answers."""
        self.served = {subject: answer for subject, answer in self.served.items() if subject.startswith("encode.")}
        for task in self.answering:
            task.cancel()


@cache
def plan_key() -> Ed25519PrivateKey:
    """The owner's, of every world."""
    return Ed25519PrivateKey.from_private_bytes(bytes(32))


class World:
    """Parties, brokers and links. `luck` decides delays; what goes wrong is the caller's to say."""

    def __init__(self, seed: int, *, guests: int = 3, hosts: int = 2, size: Size | None = None, **change: Any) -> None:
        self.luck = random.Random(seed)
        self.guests = [f"guest-{number + 1}" for number in range(guests)]
        self.hosts = [f"host-{number + 1}" for number in range(hosts)]
        self._key, self._size = plan_key(), size or Size()
        self.tables, self.labels = rows_and_labels(self.guests, self._size)
        self.plan = training_plan(self.guests, self.hosts, self._size, **change)
        self.brokers = {host: Broker() for host in self.hosts}
        self.links = {(party, host): True for party in [*self.guests, "owner"] for host in self.hosts}
        self.disks: dict[str, MemoryStorage] = {name: MemoryStorage() for name in self.names}
        self.running: dict[str, asyncio.Task[None]] = {}
        self.zombies: list[asyncio.Task[None]] = []  # processes that go on beside a newer one of the same party
        self.parties: dict[str, Any] = {}
        self.failed: dict[str, Exception] = {}
        self.fenced: list[str] = []  # zombies that ended as they must
        self.bare: set[str] = set()  # parties that lost their disk
        self.frozen: dict[tuple[str, str], list[bytes]] = {}  # what was in a host's tables when it froze, by its hash
        self.finished = 0
        self.said: list[str] = []  # what parties logged
        self.to_guests: list[bytes] = []  # every message that a guest was sent
        self.to_hosts: list[bytes] = []  # every prediction that a host was asked for
        self.patience_s = REQUEST_S  # an answer that takes longer does not come
        self.stops: dict[str, asyncio.Event] = {}  # of the newest process of each

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
        await asyncio.sleep(self.luck.uniform(0.001, 0.2))
        return task()

    def start(self, name: str) -> None:
        """A process begins, on whatever its disk has."""
        if name in self.running and not self.running[name].done():
            return
        self.stops[name] = asyncio.Event()
        self.running[name] = asyncio.get_running_loop().create_task(self._live(name))

    def kill(self, name: str) -> None:
        """A process ends between two instructions."""
        if name in self.running:
            self.running.pop(name).cancel()
        if name in self.brokers:
            self.brokers[name].desert()
        for broker in self.brokers.values():
            broker.served.pop(f"encode.{name}", None)

    async def stop(self, name: str) -> None:
        """A process is asked to end, and does so in good order."""
        if name in self.running:
            self.stops[name].set()
            await self.running[name]
        self.kill(name)

    def start_twin(self, name: str) -> None:
        """A second process on a copy of the folder; the first goes on."""
        self.zombies.append(self.running.pop(name))
        self.disks[name] = copy.deepcopy(self.disks[name])
        self.start(name)

    def lose_disk(self, name: str) -> None:
        self.kill(name)
        self.disks[name] = MemoryStorage()
        self.bare.add(name)
        self._forget(name)

    def lose_power(self, name: str) -> None:
        """A host's machine goes down, and nothing in its tables can be believed any more."""
        self.kill(name)
        self.disks[name].tables.clear()
        self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self.brokers:
            self.brokers[name].read = {}
            self.frozen = {key: held for key, held in self.frozen.items() if key[0] != name}

    async def _live(self, name: str) -> None:
        try:
            await self._service(name).run(self.stops[name])
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if isinstance(error, Fenced) and asyncio.current_task() in self.zombies:
                self.fenced.append(name)
            else:
                self.failed[name] = error

    def _service(self, name: str) -> GuestService | HostService | OwnerService:
        disk, public = self.disks[name], self._key.public_key()
        if name == "owner":
            owner = OwnerParty(
                name,
                self.labels[0],
                self.labels[1],
                OwnerSettings(
                    epochs=self._size.owner_epochs,
                    rule=Adam(0.1),
                    schedule="constant",
                    dropout=0.0,
                ),
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
        lines = {host: _GuestLine(self, name, host) for host in self.hosts}
        return GuestService(guest, lines, self, _Files(self, name, self.tables[name]))

    def _count(self, owner: OwnerParty) -> None:
        self.finished += 1

    async def carried(self, party: str, host: str) -> bool:
        """A message on its way; whether it gets there."""
        await asyncio.sleep(self.luck.uniform(0.0005, 0.05))
        return self.links[party, host] and self.brokers[host].up

    async def asked(self, party: str, host: str, subject: str, data: bytes) -> bytes | None:
        """A request and its answer, or none in time."""
        return await self.exchanged(lambda: self.carried(party, host), host, subject, data, self.patience_s)

    async def exchanged(
        self, way: Callable[[], Coroutine[Any, Any, bool]], host: str, subject: str, data: bytes, within_s: float
    ) -> bytes | None:
        """A request and its answer at one broker; `way` says whether a message gets there, or back."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        if await way():
            serve = self.brokers[host].served.get(subject)
            if serve is not None:
                answer = await self._answered(host, serve(data))
                back = await way() and self.brokers[host].served.get(subject) is serve
                if back and loop.time() - began < within_s:
                    return answer
            elif subject.startswith("encode."):
                return None  # the broker says that nobody listens
        await asyncio.sleep(max(0.0, began + within_s - loop.time()))
        return None

    async def _answered(self, host: str, answer: Coroutine[Any, Any, bytes]) -> bytes | None:
        """The host's to finish, whatever happens to who asked; it dies with the host."""
        task = asyncio.get_running_loop().create_task(answer)
        under_way = self.brokers[host].answering
        under_way.append(task)
        task.add_done_callback(under_way.remove)
        await asyncio.wait([task])
        return None if task.cancelled() or task.exception() else task.result()


@dataclass
class _Files:
    """A guest's tables in the world, which the story may change."""

    world: World
    guest: str
    seen: tuple[Table, Table]

    def look(self, schema: dict[str, Any]) -> tuple[Table, Table] | None:
        before, self.seen = self.seen, self.world.tables[self.guest]
        return None if self.seen is before else self.seen


@dataclass
class _GuestLine:
    world: World
    guest: str
    host: str
    traffic: Traffic = NO_TRAFFIC

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

    async def serve(self, subject: str, answer: Answer) -> None:
        self.world.brokers[self.host].served[f"{subject}.{self.guest}"] = answer


@dataclass
class _HostLine:
    world: World
    host: str
    traffic: Traffic = NO_TRAFFIC

    async def fetch(self, guest: str, stream: str, sequence: int) -> Post | None:
        await asyncio.sleep(self.world.luck.uniform(0.001, 0.5))
        broker = self.world.brokers[self.host]
        if not broker.up:
            return None
        identity, held = str(broker.identity), broker.streams.get(guest, [])
        after = sequence if stream == identity else 0
        new = [(number, data) for number, data in held if number > after][:5]
        return Post(identity, new, gap=bool(new) and new[0][0] > after + 1)

    async def keep_only(self, guests: list[str]) -> bool:
        streams = self.world.brokers[self.host].streams
        for guest in streams.keys() - set(guests):
            del streams[guest]
        return True

    async def serve(self, subject: str, answer: Answer) -> None:
        self.world.brokers[self.host].served[subject] = answer

    async def ask(self, guest: str, data: bytes, within_s: float) -> bytes | None:
        self.world.to_guests.append(data)
        way = lambda: self.world.carried(guest, self.host)  # noqa: E731
        return await self.world.exchanged(way, self.host, f"encode.{guest}", data, within_s)


@dataclass
class _OwnerLine:
    world: World
    host: str

    async def tell(self, data: bytes) -> bytes | None:
        return await self.world.asked("owner", self.host, "owner.tell", data)

    async def collect(self, data: bytes) -> bytes | None:
        return await self.world.asked("owner", self.host, "owner.collect", data)

    async def predict(self, data: bytes, within_s: float) -> bytes | None:
        self.world.to_hosts.append(data)
        way = lambda: self.world.carried("owner", self.host)  # noqa: E731
        return await self.world.exchanged(way, self.host, "owner.predict", data, within_s)
