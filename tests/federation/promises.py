"""What every run of a simulated federation keeps, whatever happened in it."""

from collections.abc import Iterator
from functools import lru_cache

from world import World

from dvfl.federation.host.known_guests import GuestKnown
from dvfl.federation.protocol.wire import Encodings, decode


def check_midway(world: World) -> None:
    """At any moment."""
    assert not unwritten(world), unwritten(world)
    assert not outlived(world), outlived(world)
    assert not thawed(world), thawed(world)


def check(world: World) -> None:
    """At the end of a run."""
    check_midway(world)
    assert not world.failed, world.failed
    assert world.finished, [world.parties[name].state for name in world.names]
    assert world.owner.score is not None and world.owner.score > 70, world.owner.score
    assert not unapplied(world), unapplied(world)
    waits = {name: world.parties[name].longest_wait_s for name in world.names}
    # An answer's deadline, and a little for what is done around it.
    assert max(waits.values()) <= world.patience_s + 1.0, waits
    assert len(world.fenced) == len(world.zombies), "a process went on beside a newer one"


def unapplied(world: World) -> list[str]:
    """Acknowledged writes that are neither in their host's table nor superseded there by newer ones."""
    lost = []
    for host, broker in world.brokers.items():
        for guest, data in broker.acknowledged:
            message, known = _read(data), world.parties[host].guests.get(guest)
            if known is None or known.refill:  # the host has lost all, and said so or is about to
                continue
            if message.lineage != world.parties[guest].lineage or _stands(world, host, guest, message):
                continue
            if world.parties[host].frozen and (guest in world.bare or _covered(world, host, guest, message)):
                continue  # too late: with new weights, or from before a sweep that another process had finished
            if message.sweep is None or known.sweep != message.sweep.encoder or not _same(world, host, guest, message):
                lost.append(_named(host, guest, message))
    return lost


def unwritten(world: World) -> list[str]:
    """What hosts that still train say that they have read, and have not, nor anything newer."""
    missing = []
    for host, guest, known in _training(world):
        broker = world.brokers[host]
        if known.refill or known.stream != str(broker.identity) or guest in world.bare:
            continue
        read = broker.read[guest] = max(broker.read.get(guest, 0), known.sequence)
        for number, data in broker.streams.get(guest, []):
            message = _read(data)
            if number <= read and message.lineage == known.lineage and not _stands(world, host, guest, message):
                missing.append(_named(host, guest, message))
    return missing


def outlived(world: World) -> list[str]:
    """Hosts that still train, and hold what a guest sent before it lost its weights."""
    found = []
    for host, guest, known in _training(world):
        if guest in world.bare:
            sent = [_read(data) for name, data in world.brokers[host].acknowledged if name == guest]
            now = [message.incarnation for message in sent if message.lineage == known.lineage]
            held = world.disks[host].tables[guest].incarnations
            if now and ((held > 0) & (held < min(now))).any():
                found.append(f"{host}: {guest}")
    return found


def thawed(world: World) -> list[str]:
    """Hosts whose tables have changed since they froze, and were not lost."""
    changed = []
    for host in world.hosts:
        party = world.parties.get(host)
        if party is not None and party.frozen and host in world.running:
            held = [table.values.tobytes() for table in world.disks[host].tables.values()]
            if world.frozen.setdefault((host, party.frozen), held) != held:
                changed.append(host)
    return changed


def _training(world: World) -> Iterator[tuple[str, str, GuestKnown]]:
    for host in world.hosts:
        party = world.parties.get(host)
        if party is not None and not party.frozen and host in world.running:
            for guest, known in party.guests.items():
                yield host, guest, known


def _stands(world: World, host: str, guest: str, message: Encodings) -> bool:
    """Whether all slots of a message hold it or something newer."""
    table, step = world.disks[host].tables[guest], message.epoch << 32 | message.iteration
    incarnations, steps = table.incarnations[message.slots], table.steps[message.slots]
    older = (incarnations < message.incarnation) | ((incarnations == message.incarnation) & (steps < step))
    return not older.any()


def _covered(world: World, host: str, guest: str, message: Encodings) -> bool:
    """Whether all slots of a training message hold a final sweep."""
    steps = world.disks[host].tables[guest].steps[message.slots]
    return message.sweep is None and bool((steps >> 32 > world.plan.guest_epochs).all())


def _same(world: World, host: str, guest: str, message: Encodings) -> bool:
    """Whether a sweep that was repeated left its very values: they are the same however often it comes."""
    return bool((world.disks[host].tables[guest].values[message.slots] == message.values).all())


def _named(host: str, guest: str, message: Encodings) -> str:
    return f"{host}: {guest} {message.incarnation}.{message.epoch}.{message.iteration}"


@lru_cache(4096)
def _read(data: bytes) -> Encodings:
    return decode(data, Encodings)
