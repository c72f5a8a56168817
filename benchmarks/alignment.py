"""What an alignment costs against the bare operations of its library, with all parties in one process.

    python benchmarks/alignment.py --way union --ids 100000 --threads 2

Prints one JSON line. 60 % of each party's ids are common to all; the others are spread evenly over all other subsets of
parties. Every slot of every party is checked. The bare operations are timed in slices between those of the alignment,
so that both meet the same luck: for `union` as many maps to the curve and multiplications, for `star` one plain
intersection of openmined-psi a guest. By default a fifth of them is done, and the time scaled.
"""

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import numpy as np
from nacl import bindings
from numpy.typing import NDArray

from dvfl.align.ids import IdRules
from dvfl.align.rows import Rows
from dvfl.align.star.intersection import library
from dvfl.align.star.star import star_owner
from dvfl.align.star.star_guest import star_guest
from dvfl.align.tasks import Guest, Owner, Task
from dvfl.align.union.union import union_guest, union_owner

SLICES = 20
OVERLAP = 0.6


class Held(dict[str, bytes]):
    """A storage in memory."""

    def put(self, name: str, content: bytes) -> None:
        self[name] = content

    def drop(self, prefix: str) -> None:
        for name in [name for name in self if name.startswith(prefix)]:
            del self[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=["union", "star"], default="union")
    parser.add_argument("--ids", type=int, default=100_000, help="of each party")
    parser.add_argument("--guests", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--share", type=float, default=0.2, help="of the bare operations that is timed")
    given = parser.parse_args()
    names = (*(f"guest-{number + 1}" for number in range(given.guests)), "owner")
    people = membership(given.ids, len(names))
    sets = {name: rows(np.flatnonzero(people[:, place])) for place, name in enumerate(names)}
    make_owner, make_guest = (union_owner, union_guest) if given.way == "union" else (star_owner, star_guest)
    owner = make_owner("owner", sets["owner"], names[:-1], IdRules(), Held(), secret=os.urandom(32))
    guests = {
        name: make_guest(name, sets[name], IdRules(), Held(), secret=os.urandom(32))
        for name in names
        if name != "owner"
    }
    with ThreadPoolExecutor(given.threads) as pool:
        raw = (raw_union if given.way == "union" else raw_star)(sets, given.threads, pool)
        seconds, raw_seconds, size = run(owner, guests, pool, given.threads, raw, given.share)
    check(people, {name: guests[name] for name in names[:-1]}, owner, given.way)
    report = {
        "way": given.way,
        "parties": len(names),
        "ids": given.ids,
        "threads": given.threads,
        "cores": os.cpu_count(),
        "seconds": round(seconds, 2),
        "raw_seconds": round(raw_seconds, 2),
        "ratio": round(seconds / raw_seconds, 3),
        "megabytes_exchanged": round(size / 1e6, 1),
        "peak_memory_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "subsets_checked": 2 ** len(names) - 1,
        "correct": True,
    }
    print(json.dumps(report))


def membership(ids: int, parties: int) -> NDArray[np.bool_]:
    """Who has whom, (people, parties): every subset of parties has somebody to itself."""
    everybody = round(OVERLAP * ids)
    each = max(1, round((ids - everybody) / (2 ** (parties - 1) - 1)))
    subsets = np.repeat(np.arange(1, 2**parties - 1), each)
    codes = np.random.default_rng(0).permutation(np.append(subsets, np.full(everybody, 2**parties - 1)))
    return (codes[:, None] >> np.arange(parties) & 1).astype(bool)


def rows(people: NDArray[np.intp]) -> Rows:
    """A tenth of them are test rows."""
    tests = people % 10 == 0
    train, test = ([b"person-%09d" % one for one in part] for part in (people[~tests], people[tests]))
    return Rows(train, test)


def run(
    owner: Owner,
    guests: dict[str, Guest],
    pool: ThreadPoolExecutor,
    threads: int,
    raw: Callable[[float], float],
    share: float,
) -> tuple[float, float, int]:
    """Seconds of the alignment and of its bare operations, and the bytes that crossed between the parties."""
    seconds = raw_seconds = 0.0
    size, slices = 0, 0
    under_way: dict[Future[bytes], tuple[str, Task]] = {}
    begun = time.perf_counter()
    while not owner.finished:
        due = slices < SLICES and slices <= SLICES * owner.progress.done / max(1, owner.progress.total)
        if due and not under_way:
            seconds += time.perf_counter() - begun
            raw_seconds += raw(share / SLICES)
            slices += 1
            begun = time.perf_counter()
            continue
        for party in () if due else owner.parties:
            while len(under_way) < 2 * threads and (task := owner.wanted(party)):
                answer = owner.answer if party == "owner" else guests[party].answer
                under_way[pool.submit(answer, task)] = party, task
        for future in wait(under_way, return_when=FIRST_COMPLETED).done:
            party, task = under_way.pop(future)
            if party != "owner":
                size += len(task.content) + len(future.result())
            owner.took(party, task, future.result())
    seconds += time.perf_counter() - begun
    while slices < SLICES:
        raw_seconds += raw(share / SLICES)
        slices += 1
    return seconds, raw_seconds / share, size


def raw_union(sets: dict[str, Rows], threads: int, pool: ThreadPoolExecutor) -> Callable[[float], float]:
    """Times a part of the maps to the curve and of the multiplications that a union needs."""
    parties = len(sets)
    maps = sum(len(part) for of in sets.values() for part in of)
    multiplications = maps * parties + sum(map(len, sets["owner"]))  # the owner's own set goes through one scalar more
    scalar = bindings.crypto_core_ed25519_scalar_reduce(os.urandom(64))
    point = bindings.crypto_core_ed25519_from_uniform(os.urandom(32))

    def work(share: float) -> None:
        for _ in range(round(maps * share / threads)):
            bindings.crypto_core_ed25519_from_uniform(point)
        for _ in range(round(multiplications * share / threads)):
            bindings.crypto_scalarmult_ed25519_noclamp(scalar, point)

    def timed(share: float) -> float:
        begun = time.perf_counter()
        list(pool.map(work, [share] * threads))
        return time.perf_counter() - begun

    return timed


def raw_star(sets: dict[str, Rows], threads: int, pool: ThreadPoolExecutor) -> Callable[[float], float]:
    """Times plain intersections of a part of the owner's ids with as many of each guest's."""
    psi = library()
    ids = {name: [one.decode() for part in of for one in part] for name, of in sets.items()}

    def work(name: str, share: float) -> None:
        client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
        own, theirs = (ids[party][: round(share * len(ids[party]))] for party in ("owner", name))
        setup = server.CreateSetupMessage(1e-9, len(own), theirs, psi.DataStructure.RAW)
        client.GetIntersection(setup, server.ProcessRequest(client.CreateRequest(own)))

    def timed(share: float) -> float:
        begun = time.perf_counter()
        guests = [name for name in sets if name != "owner"]
        list(pool.map(work, guests, [share] * len(guests)))
        return time.perf_counter() - begun

    return timed


def check(people: NDArray[np.bool_], guests: dict[str, Guest], owner: Owner, way: str) -> None:
    """Ends the program where anybody's slot or presence is wrong."""
    result, number = owner.result, np.arange(len(people))
    tests, labelled = number % 10 == 0, people[:, -1]
    slot = np.full((len(people), people.shape[1]), -1)
    for place, slots in enumerate([*(guest.slots for guest in guests.values()), result.slots["owner"]]):
        assert slots is not None
        for part, is_test in ((slots.train, False), (slots.test, True)):
            slot[people[:, place] & (tests == is_test), place] = part
    known: NDArray[np.bool_] = np.asarray(people[:, :-1].any(axis=1))
    shared = known if way == "union" else known & labelled  # a star matches nobody whom the owner does not have
    alone = people[:, :-1] & ~shared[:, None]
    highest = slot.max(axis=1)
    right = [
        (slot[shared] == np.where(people[shared], highest[shared, None], -1)).all(),
        (slot[~known] == -1).all(),
        len(np.unique(np.append(highest[shared], slot[:, :-1][alone]))) == shared.sum() + alone.sum(),
        (result.presence[highest[shared]] == people[shared, :-1]).all(),
        (result.presence[slot[:, :-1][alone]].sum(axis=1) == 1).all(),
        ((highest < result.training) == ~tests)[known].all(),
        result.unmatched == (~known).sum(),
    ]
    if not all(right):
        sys.exit(f"wrong slots: {right}")


if __name__ == "__main__":
    main()
