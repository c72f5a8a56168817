"""One host by itself, and what guests and the owner would say to it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from virtual_loop import simulate
from world import MemoryStorage, World, plan_key

from dvfl.federation.host.host import HostParty
from dvfl.federation.protocol.plan import Phase, Plan, sign
from dvfl.federation.protocol.wire import Encodings, Hello, Sweep, Tell, encode

ROWS = np.arange(48, dtype=np.int32)
STEPS = 4 * 3  # of the worlds' plan: host epochs x iterations


def made_plan(**change: Any) -> Plan:
    async def story() -> Plan:
        return World(0, **change).plan

    return simulate(story)


PLAN = made_plan()


def tell(plan: Plan = PLAN, phase: Phase = "train", revision: int = 1, key: Ed25519PrivateKey | None = None) -> Tell:
    return Tell(sign(plan, phase, revision, key or plan_key()).text())


def hello(guest: str, lineage: int = 5, incarnation: int = 100) -> Hello:
    return Hello("", guest, lineage, incarnation, 0, 0, "training", 0, 0, 0, 0, 0, 0, None, 0.0)


def opened(storage: MemoryStorage | None = None, said: list[str] | None = None) -> HostParty:
    log = (said if said is not None else []).append
    return HostParty(
        "host-1", storage or MemoryStorage(), plan_key().public_key(), federation="f" * 64, now_ms=0, log=log
    )


def made(storage: MemoryStorage | None = None, plan: Plan = PLAN, said: list[str] | None = None) -> HostParty:
    """A host with a plan, to which all guests have said hello."""
    host = opened(storage, said)
    host.tell(tell(plan), now_ms=0)
    for guest in host.guests:
        host.hello(guest, hello(guest))
    return host


def message(guest: str = "guest-1", **change: Any) -> Encodings:
    values = np.ones((48, 4), np.float32)
    return replace(Encodings(PLAN.run, guest, 5, 100, 1, 2, None, ROWS, values), **change)


def sweep(guest: str, encoder: str = "e" * 64, **change: Any) -> Iterator[Encodings]:
    slots = np.arange(64, dtype=np.int32)
    for part in range(2):
        own = slots[32 * part : 32 * part + 32]
        values = np.full((32, 4), 2.0, np.float32)
        yield message(
            guest, epoch=4, iteration=0, sweep=Sweep(part, 2, encoder, "a" * 64), slots=own, values=values, **change
        )


def write(host: HostParty, *messages: Encodings, now_ms: int = 1) -> list[str]:
    return [
        host.write(one.guest, encode(one), "stream", number + 1, now_ms=now_ms) for number, one in enumerate(messages)
    ]


def swept(host: HostParty, *guests: str) -> HostParty:
    for guest in guests or host.guests:
        write(host, *sweep(guest))
    return host


def frozen(**options: Any) -> HostParty:
    host = swept(made(**options))
    if steps := host.allowed(now_ms=1):
        host.train(steps)
    host.settle(now_ms=1)
    assert host.frozen
    return host
