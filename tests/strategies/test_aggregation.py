"""Registers, ring and replay together, against a model that simply remembers everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_hosts import (
    EPOCHS,
    GUESTS,
    HOSTS,
    ITERATIONS,
    LIVE,
    NO_ROWS,
    REPLAYED,
    REPLICAS,
    ROUND_BYTES,
    Bools,
    Heard,
    Script,
    phase,
    push,
    states,
    value,
)

from dvfl.errors import UserError


class Model:
    """Registers and histories that remember all, in dictionaries."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.written = capacity, 0
        self.registers: dict[tuple[int, int, int], int] = {}
        self.history: dict[tuple[int, int], list[list[int | None]]] = {key: [] for key in np.ndindex(REPLICAS, HOSTS)}

    def make_room(self, count: int) -> None:
        self.written += count
        oldest = self.written - self.capacity
        for (replica, host), inputs in self.history.items():
            held = [self.registers.get((replica, host, guest)) for guest in range(GUESTS)]
            inputs[:] = [
                numbers
                for numbers in inputs
                if all(n is None or n >= oldest or n == held[guest] for guest, n in enumerate(numbers))
            ]

    def deliver(self, number: int, arrives: Bools) -> None:
        for key in np.ndindex(REPLICAS, HOSTS, GUESTS):
            if arrives[key]:
                self.registers[key] = number

    def read(self, replica: int, host: int) -> list[int | None]:
        return [self.registers.get((replica, host, guest)) for guest in range(GUESTS)]


def values(numbers: list[int | None], replica: int) -> list[float | None]:
    return [None if n is None else value(n, replica, guest) for guest, n in enumerate(numbers)]


@settings(deadline=None, max_examples=150)
@given(st.integers(1, EPOCHS * ITERATIONS + 2), LIVE, LIVE, LIVE, st.integers(0, 2**32))
def test_hosts_read_what_was_written_however_small_the_ring(
    capacity: int, guests_live: float | None, links_live: float | None, hosts_live: float | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rounds = EPOCHS * ITERATIONS
    alive = states(rng, guests_live, rounds, REPLICAS, GUESTS)
    links = states(rng, links_live, rounds, REPLICAS, HOSTS * GUESTS)
    up = states(rng, hosts_live, rounds + REPLAYED * ITERATIONS, REPLICAS, HOSTS)
    hosts, heard = phase(capacity), Heard()
    model = Model(hosts.capacity)
    hosts.links = None if links is None else Script(links)  # type: ignore[assignment]
    hosts.chains = None if up is None else Script(up)  # type: ignore[assignment]
    everyone = np.ones((REPLICAS, HOSTS, GUESTS), bool)

    with pytest.MonkeyPatch.context() as monkeypatch:
        heard.listen(hosts, monkeypatch)
        for epoch in range(EPOCHS):
            chunk = min(ITERATIONS, hosts.capacity)
            for first in range(0, ITERATIONS, chunk):
                count = min(chunk, ITERATIONS - first)
                t = epoch * ITERATIONS + first
                model.make_room(count)
                numbers = hosts.make_room(count)
                for number in numbers:
                    push(hosts, int(number))
                living = None if alive is None else alive[t : t + count]
                hosts.receive(t, numbers, np.stack([NO_ROWS] * count), living, listens=True)
                for number in range(t, t + count):
                    arrives = everyone.copy()
                    if alive is not None:
                        arrives &= alive[number][:, None, :]
                    if links is not None:
                        arrives &= links[number].reshape(REPLICAS, HOSTS, GUESTS)
                    model.deliver(number, arrives)
                    for replica, host in np.ndindex(REPLICAS, HOSTS):
                        numbers_read = model.read(replica, host)
                        runs = (up is None or up[number, replica, host]) and any(n is not None for n in numbers_read)
                        expected = values(numbers_read, replica) if runs else None
                        assert heard.next(replica, host) == expected
                        if runs:
                            model.history[replica, host].append(numbers_read)
                    heard.done()
            hosts.close_epoch()
        for epoch in range(REPLAYED):
            hosts.advance()
            for t in range(epoch * ITERATIONS, (epoch + 1) * ITERATIONS):
                for replica, host in np.ndindex(REPLICAS, HOSTS):
                    history = model.history[replica, host]
                    runs = len(history) > 0 and (up is None or up[rounds + t, replica, host])
                    expected = values(history[t % len(history)], replica) if runs else None
                    assert heard.next(replica, host) == expected
                heard.done()
    assert hosts.finished


@given(st.integers(ROUND_BYTES, 20 * ROUND_BYTES))
def test_the_ring_stays_within_its_budget(history_bytes: int) -> None:
    hosts = phase(0, history_bytes=history_bytes)
    ring = sum(store.batches[: store.capacity].nbytes for store in hosts.stores) // REPLICAS
    assert ring <= history_bytes
    assert hosts.capacity == min(EPOCHS * ITERATIONS, history_bytes // ROUND_BYTES)


@given(st.integers(ROUND_BYTES, 20 * ROUND_BYTES))
def test_beyond_the_budget_there_is_one_place_a_register_and_no_more(history_bytes: int) -> None:
    hosts = phase(0, history_bytes=history_bytes)
    everything = sum(store.batches.nbytes for store in hosts.stores) // REPLICAS
    assert everything <= history_bytes + HOSTS * ROUND_BYTES


def test_half_precision_keeps_twice_as_much() -> None:
    assert phase(4, history_dtype="float16").capacity == 8


def test_without_replay_one_epoch_of_batches_is_enough() -> None:
    assert phase(0, replayed=0, history_bytes=None).capacity == ITERATIONS


def test_a_budget_below_one_round_is_refused() -> None:
    with pytest.raises(UserError, match=f"one round of encodings alone takes {ROUND_BYTES}"):
        phase(0, history_bytes=ROUND_BYTES - 1)


def test_shuffled_replay_gives_every_host_inputs_of_its_own_from_the_history() -> None:
    hosts, heard = phase(EPOCHS * ITERATIONS, replay="shuffled"), Heard()
    with pytest.MonkeyPatch.context() as monkeypatch:
        heard.listen(hosts, monkeypatch)
        for epoch in range(EPOCHS):
            numbers = hosts.make_room(ITERATIONS)
            for number in numbers:
                push(hosts, int(number))
            hosts.receive(epoch * ITERATIONS, numbers, np.stack([NO_ROWS] * ITERATIONS), None, listens=True)
            hosts.close_epoch()
        heard.rounds.clear()
        while not hosts.finished:
            hosts.advance()
    drawn: dict[tuple[int, int], list[int]] = {key: [] for key in np.ndindex(REPLICAS, HOSTS)}
    for _ in range(REPLAYED * ITERATIONS):
        for replica, host in drawn:
            read = heard.next(replica, host)
            assert read is not None
            number = int(read[0] or 0) // 100
            assert read == values([number] * GUESTS, replica)
            drawn[replica, host].append(number)
        heard.done()
    assert len({tuple(numbers) for numbers in drawn.values()}) == REPLICAS * HOSTS
