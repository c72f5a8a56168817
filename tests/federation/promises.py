"""What every run of a simulated federation keeps, whatever happened in it."""

from functools import lru_cache

from world import World

from dvfl.federation.wire import Encodings, decode


def check(world: World) -> None:
    """At the end of a run."""
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
            message, known = _read(data), world.parties[host].guests[guest]
            if message.lineage != world.parties[guest].lineage or _stands(world, host, guest, message):
                continue
            if world.parties[host].frozen and guest in world.bare | world.doubled:  # its other process was earlier
                continue
            if message.sweep is None or known.sweep != message.sweep.encoder or not _same(world, host, guest, message):
                lost.append(_named(host, guest, message))
    return lost


def unwritten(world: World) -> list[str]:
    """What hosts that still train say that they have read, and have not, nor anything newer."""
    missing = []
    for host, broker in world.brokers.items():
        party = world.parties.get(host)
        if party is None or party.frozen or host not in world.running:
            continue
        for guest, known in party.guests.items():
            if known.refill or known.stream != str(broker.identity) or guest in world.bare:
                continue
            read = broker.read[guest] = max(broker.read.get(guest, 0), known.sequence)
            for number, data in broker.streams.get(guest, []):
                message = _read(data)
                if number <= read and message.lineage == known.lineage and not _stands(world, host, guest, message):
                    missing.append(_named(host, guest, message))
    return missing


def _stands(world: World, host: str, guest: str, message: Encodings) -> bool:
    """Whether all slots of a message hold it or something newer."""
    table, step = world.disks[host].tables[guest], message.epoch << 32 | message.iteration
    incarnations, steps = table.incarnations[message.slots], table.steps[message.slots]
    older = (incarnations < message.incarnation) | ((incarnations == message.incarnation) & (steps < step))
    return not older.any()


def _same(world: World, host: str, guest: str, message: Encodings) -> bool:
    """Whether a sweep that was repeated left its very values: they are the same however often it comes."""
    return bool((world.disks[host].tables[guest].values[message.slots] == message.values).all())


def _named(host: str, guest: str, message: Encodings) -> str:
    return f"{host}: {guest} {message.incarnation}.{message.epoch}.{message.iteration}"


@lru_cache(4096)
def _read(data: bytes) -> Encodings:
    return decode(data, Encodings)
