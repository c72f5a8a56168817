"""The faults of a stack: one set a replica, parties by their names, chains that may end a training."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.parties.faults.chains import Chains
from dvfl.parties.faults.fault_set import NO_FAULTS, Faults, Kind

PerReplica = Faults | Sequence[Faults]  # the same for all replicas, or one each


def per_replica(faults: PerReplica, replicas: int) -> tuple[Faults, ...]:
    """One each."""
    if isinstance(faults, Faults):
        return (faults,) * replicas
    if len(faults) != replicas:
        raise ValueError(f"{len(faults)} faults for {replicas} replicas; one each is right")
    return tuple(faults)


def chains(kind: Kind, faults: Sequence[Faults], seeds: Sequence[int], entities: Sequence[str]) -> Chains | None:
    """The chains of one kind; None where no replica suffers from it."""
    made = Chains(kind, faults, seeds, entities)
    return made if made.active else None


def check_progress(of: Chains | None, kind: Kind, seeds: Sequence[int]) -> None:
    """Stops a training in which everyone of a kind is dead and nobody can rejoin."""
    if of is not None and (lost := of.lost_for_good()).any():
        cannot_progress(of.gone(), lost, kind, seeds)


def cannot_progress(gone: NDArray[np.bool_], lost: NDArray[np.bool_], kind: str, seeds: Sequence[int]) -> None:
    """Stops a training where a replica is `lost` (replicas,), given who of a kind is `gone` (replicas, entities)."""
    for replica in np.flatnonzero(lost).tolist():
        who = "every" if gone[replica].all() else "a"
        raise UserError(
            f"training cannot progress: with seed {seeds[replica]} {who} {kind} is dead for good (R_u is 0, or a"
            " recorded outage has no end); --faults that let the dead rejoin are right"
        )


def resolved(faults: Sequence[Faults], guests: Sequence[str], hosts: Sequence[str]) -> tuple[Faults, ...]:
    """Faults with every guest by its own name, where it may also be called guest-1, guest-2 .. in the tables' order.

    Parties that are not there are refused.
    """
    numbered = {f"guest-{number + 1}": name for number, name in enumerate(guests)}
    names = {**numbered, **{name: name for name in guests}}  # a name of its own comes first
    known: dict[Faults, Faults] = {NO_FAULTS: NO_FAULTS}
    for one in set(faults):
        one.check(list(names), hosts)
        wrong, outages = one.corruption, one.outages
        if wrong is not None:
            wrong = replace(wrong, guest=names[wrong.guest])
        if outages is not None:
            outages = replace(
                outages, rows=tuple(replace(row, party=_renamed(row.party, names)) for row in outages.rows)
            )
        known[one] = replace(one, corruption=wrong, outages=outages)
    return tuple(known[one] for one in faults)


def _renamed(party: str, names: Mapping[str, str]) -> str:
    """A guest, a host, or a link by the guest's own name."""
    guest, arrow, host = party.rpartition(">") if party not in names else (party, "", "")
    return names.get(guest, guest) + arrow + host
