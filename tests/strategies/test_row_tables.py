"""Row registers of a stack, against hosts of the core that are written message by message."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scripted_hosts import (
    BATCH,
    EPOCHS,
    GUESTS,
    HOSTS,
    ITERATIONS,
    LATENTS,
    LIVE,
    NAMES,
    REPLAYED,
    REPLICAS,
    ROWS,
    Bools,
    Heard,
    Ints,
    Script,
    phase,
    push,
    states,
    value,
)
from torch import Tensor

from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.faults.lateness import BLOCK, Lateness, lags
from dvfl.parties.memory.registers import Stamp
from dvfl.parties.memory.row_registers import HostTable, RowRegister
from dvfl.strategies.decoupled.host_phase import HostPhase

LATE = st.none() | st.builds(Lateness, st.integers(0, 4), st.integers(0, 3), st.integers(0, 3))


def row_phase(capacity: int = ITERATIONS, **options: Any) -> HostPhase:
    return phase(capacity, registers="row", **options)


def shuffles(rng: np.random.Generator) -> Ints:
    """What an epoch's batches are made of: (iterations, replicas, batch)."""
    orders = [rng.permutation(ROWS) for _ in range(REPLICAS)]
    return np.stack([np.append(order, order[0]).reshape(ITERATIONS, BATCH) for order in orders], 1).astype(np.int32)


class RowModel:
    """A host of the core for every host of the stack, written message by message."""

    def __init__(self, late: Lateness | None) -> None:
        self.late = late
        self.tables = {
            key: HostTable([RowRegister.empty(ROWS, latent) for latent in LATENTS])
            for key in np.ndindex(REPLICAS, HOSTS)
        }
        self.due: dict[tuple[int, int, int, int], list[tuple[int, Ints]]] = {}

    def send(self, number: int, rows: Ints, arrives: Bools) -> None:
        for replica, host, guest in np.argwhere(arrives).tolist():
            copies = {0}
            if self.late is not None:
                both = lags(self.late, replica, f"{NAMES[guest]}>host-{host + 1}", number // BLOCK)[:, number % BLOCK]
                copies = set(both.tolist())
            for lag in copies:
                self.due.setdefault((number + lag, replica, host, guest), []).append((number, rows[replica]))

    def deliver(self, t: int, up: Bools | None) -> None:
        for replica, host, guest in np.ndindex(REPLICAS, HOSTS, GUESTS):
            if up is not None and not up[replica, host]:
                continue
            for number, rows in self.due.get((t, replica, host, guest), []):
                values = [[value(number, replica, guest) + 0.1 * row] * LATENTS[guest] for row in rows.tolist()]
                register = self.tables[replica, host].registers[guest]
                register.write(rows, np.array(values, np.float32), Stamp(1, 0, number))

    def check(self, heard: Heard, up: Bools | None) -> None:
        """What every host read could have been drawn from its table; hosts that are down or deaf did not learn."""
        b, present, alive = heard.rounds.pop(0)
        for element, (key, table) in enumerate(self.tables.items()):
            learns = table.known > 0 and (up is None or up[key])
            assert (alive is None or bool(alive[element])) == learns
            if learns:
                self.check_input(table, b[element], None if present is None else present[element])

    def check_input(self, table: HostTable, b: Tensor, present: Tensor | None) -> None:
        everything, held = (array[0] for array in table.inputs(np.arange(ROWS, dtype=np.int32)))
        ends = np.cumsum(LATENTS)
        columns = [slice(end - latent, end) for end, latent in zip(ends, LATENTS, strict=True)]
        for guest, register in enumerate(table.registers):
            assert present is None or (present[:, guest] == (register.count > 0)).all()
            assert present is not None or register.count > 0

        def contributes(guest: int, row: int, found: NDArray[np.float32]) -> bool:
            mine = columns[guest]
            if held[row, guest] or not held[:, guest].any():
                return not held[row, guest] or np.array_equal(found[mine], everything[row, mine])
            return any(np.array_equal(found[mine], everything[other, mine]) for other in np.flatnonzero(held[:, guest]))

        for found in b.numpy():
            drawn = [
                row
                for row in np.flatnonzero(held.any(1)).tolist()
                if all(contributes(guest, row, found) for guest in range(GUESTS))
            ]
            assert drawn, "no row of the table explains this input"


@settings(deadline=None, max_examples=150)
@given(st.integers(1, ITERATIONS), LIVE, LIVE, LIVE, LATE, st.booleans(), st.integers(0, 2**32))
def test_row_registers_of_a_stack_are_those_of_its_hosts_written_message_by_message(
    capacity: int,
    guests_live: float | None,
    links_live: float | None,
    hosts_live: float | None,
    late: Lateness | None,
    at_first_deaf: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    rounds = EPOCHS * ITERATIONS
    alive = states(rng, guests_live, rounds, REPLICAS, GUESTS)
    links = states(rng, links_live, rounds, REPLICAS, HOSTS * GUESTS)
    up = None if at_first_deaf else states(rng, hosts_live, rounds + REPLAYED * ITERATIONS, REPLICAS, HOSTS)
    longest = late.longest if late else 0
    hosts, heard, model = row_phase(capacity + longest, faults=Faults(lateness=late)), Heard(), RowModel(late)
    hosts.links = None if links is None else Script(links)  # type: ignore[assignment]
    hosts.chains = None if up is None else Script(up)  # type: ignore[assignment]

    with pytest.MonkeyPatch.context() as monkeypatch:
        heard.listen(hosts, monkeypatch)
        for epoch in range(EPOCHS):
            order, listens = shuffles(rng), epoch > 0 or not at_first_deaf
            for first in range(0, ITERATIONS, hosts.rounds_at_once):
                rows = order[first : first + hosts.rounds_at_once]
                t = epoch * ITERATIONS + first
                numbers = hosts.make_room(len(rows))
                for number, made_of in zip(numbers.tolist(), rows, strict=True):
                    push(hosts, number, made_of)
                living = None if alive is None else alive[t : t + len(rows)]
                hosts.receive(t, numbers, rows, living, listens)
                for number, made_of in zip(range(t, t + len(rows)), rows, strict=True):
                    arrives = np.ones((REPLICAS, HOSTS, GUESTS), bool)
                    if alive is not None:
                        arrives &= alive[number][:, None, :]
                    if links is not None:
                        arrives &= links[number].reshape(REPLICAS, HOSTS, GUESTS)
                    model.send(number, made_of, arrives)
                    model.deliver(number, None if up is None else up[number])
                    if listens:
                        model.check(heard, None if up is None else up[number])
            if listens:
                hosts.close_epoch()
        while not hosts.finished:
            start = rounds + (hosts.epoch - EPOCHS) * ITERATIONS
            hosts.advance()
            for t in range(start, start + ITERATIONS):
                model.check(heard, None if up is None else up[t])
    assert not heard.rounds


def drawn_rows(lost: Bools) -> dict[tuple[int, int], NDArray[np.int64]]:
    """An epoch of which messages (iterations, replicas, hosts x guests) are lost, then many draws from the tables.

    By host, the rows that the guests contributed: (draws, guests).
    """
    epochs = 500
    hosts, heard = row_phase(replayed=epochs - EPOCHS + 1), Heard()
    hosts.links = Script(~lost)  # type: ignore[assignment]
    order = np.arange(ITERATIONS * BATCH, dtype=np.int32).reshape(ITERATIONS, 1, BATCH) % ROWS
    rows = np.repeat(order, REPLICAS, axis=1)
    with pytest.MonkeyPatch.context() as monkeypatch:
        heard.listen(hosts, monkeypatch)
        numbers = hosts.make_room(ITERATIONS)
        for number, made_of in zip(numbers.tolist(), rows, strict=True):
            push(hosts, number, made_of)
        hosts.receive(0, numbers, rows, None, listens=True)
        hosts.close_epoch()
        heard.rounds.clear()
        while not hosts.finished:
            hosts.advance()
    b = torch.stack([b for b, _, _ in heard.rounds])  # (rounds, replicas x hosts, batch, W_g)
    found = b[..., np.cumsum(LATENTS) - 1].unflatten(1, (REPLICAS, HOSTS))
    rows_of = (found.sub(found.floor()) * 10).round().long().numpy()
    return {key: rows_of[:, key[0], key[1]].reshape(-1, GUESTS) for key in np.ndindex(REPLICAS, HOSTS)}


def test_all_rows_are_drawn_alike_and_every_guest_adds_the_same_one() -> None:
    drawn = drawn_rows(np.zeros((ITERATIONS, REPLICAS, HOSTS * GUESTS), bool))
    for rows in drawn.values():
        assert (rows == rows[:, :1]).all()
        assert np.bincount(rows[:, 0]) / len(rows) == pytest.approx([1 / ROWS] * ROWS, abs=0.03)
    assert len({rows.tobytes() for rows in drawn.values()}) == REPLICAS * HOSTS  # each host has its own luck


def test_a_guest_that_lacks_a_row_adds_any_of_its_own() -> None:
    lost = np.zeros((ITERATIONS, REPLICAS, HOSTS, GUESTS), bool)
    lost[0, :, 0, 0] = True  # rows 0 and 1 never come from guest 1 to host 1, though row 0 is in the last batch again:
    lost[2, :, 0, :] = True  # that is lost, so that row 4 comes from nobody
    drawn = drawn_rows(lost.reshape(ITERATIONS, REPLICAS, -1))
    for replica in range(REPLICAS):
        lacking, full, other = drawn[replica, 0].T
        assert np.bincount(full) / len(full) == pytest.approx([0.25] * 4, abs=0.03)
        assert (full == other).all()
        assert (lacking[full >= 2] == full[full >= 2]).all()
        instead = lacking[full < 2]
        assert np.bincount(instead) / len(instead) == pytest.approx([0, 0, 0.5, 0.5], abs=0.05)


def test_row_registers_need_no_history() -> None:
    hosts = row_phase(history_bytes=None)
    assert hosts.capacity == ITERATIONS
    assert all(len(store.batches) == ITERATIONS for store in hosts.stores)
