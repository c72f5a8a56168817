"""The ring of batches and the history that points into it. Both together, under faults: strategies/test_aggregation."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dvfl.parties.memory.registers import NEVER
from dvfl.parties.memory.replay import BatchStore, ReplayBuffer

CPU = torch.device("cpu")


def store(capacity: int, dtype: torch.dtype = torch.float32, hosts: int = 2) -> BatchStore:
    return BatchStore(2, 3, hosts, batch=4, latent=5, capacity=capacity, dtype=dtype, device=CPU)


def read(kept: BatchStore, places: torch.Tensor) -> torch.Tensor:
    """Of two hosts in each of two replicas: (replicas, hosts, guests, batch, latent)."""
    readers = torch.tensor([0, 0, 1, 1])
    return kept.read(places.flatten(0, 1), readers).unflatten(0, (2, 2))


def test_what_is_read_is_what_was_written_there() -> None:
    kept = store(3)
    written = torch.randn(3, 6, 4, 5)
    for place in range(3):
        kept.write(torch.tensor(place), written[place])
    places = torch.randint(3, (2, 2, 3))
    found = read(kept, places)
    assert found.shape == (2, 2, 3, 4, 5)
    for replica, host, guest in np.ndindex(2, 2, 3):
        expected = written[places[replica, host, guest], replica * 3 + guest]
        assert torch.equal(found[replica, host, guest], expected)


def test_a_rescued_batch_survives_at_its_registers_own_place() -> None:
    kept, first, second = store(1), torch.randn(6, 4, 5), torch.randn(6, 4, 5)
    kept.write(torch.tensor(0), first)
    moves = np.zeros((2, 2, 3), bool)
    moves[1, 0, 2] = True
    kept.rescue(moves, np.zeros((2, 2, 3), np.int64))
    kept.write(torch.tensor(0), second)
    places = torch.zeros(2, 2, 3, dtype=torch.int64)
    places[1, 0, 2] = kept.capacity + 0  # the reserved place of host 0
    found = read(kept, places)
    assert torch.equal(found[1, 0, 2], first[5])
    assert torch.equal(found[1, 1, 2], second[5])


def test_half_precision_saturates_where_it_would_overflow() -> None:
    kept = store(1, torch.float16)
    kept.write(torch.tensor(0), torch.full((6, 4, 5), 1e9))
    found = read(kept, torch.zeros(2, 2, 3, dtype=torch.int64))
    assert (found == 65504).all()
    kept.write(torch.tensor(0), torch.full((6, 4, 5), -1e9))
    assert (read(kept, torch.zeros(2, 2, 3, dtype=torch.int64)) == -65504).all()


def test_full_precision_keeps_large_values() -> None:
    kept = store(1)
    kept.write(torch.tensor(0), torch.full((6, 4, 5), 1e9))
    assert (read(kept, torch.zeros(2, 2, 3, dtype=torch.int64)) == 1e9).all()


def in_order(start: int, count: int) -> np.ndarray:
    return start + np.arange(count)[:, None, None]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Some appends of numbered inputs (rounds, replicas 2, hosts 2, guests 1 or 2), kept or not."""
    guests = draw(st.integers(1, 2))
    inputs, kept, number = [], [], 0
    for rounds in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
        numbers = np.arange(number, number + rounds)
        inputs.append(np.broadcast_to(numbers[:, None, None, None], (rounds, 2, 2, guests)))
        kept.append(draw(arrays.arrays(bool, (rounds, 2, 2))))
        number += rounds
    return inputs, kept


@given(histories(), arrays.arrays(np.int64, (7, 2, 2), elements=st.integers(0, 2**40)))
def test_every_drawn_input_is_one_that_was_kept_in_the_order_it_came(
    history: tuple[list[np.ndarray], list[np.ndarray]], positions: np.ndarray
) -> None:
    replay = ReplayBuffer(capacity=100)
    for inputs, kept in zip(*history, strict=True):
        replay.append(inputs, kept)
    everything, marks = (np.concatenate(parts) for parts in history)
    drawn, anything = replay.draw(positions)
    for replica, host in np.ndindex(2, 2):
        mine = everything[marks[:, replica, host], replica, host]
        assert anything[replica, host] == (len(mine) > 0)
        if len(mine):
            expected = mine[positions[:, replica, host] % len(mine)]
            np.testing.assert_array_equal(drawn[:, replica, host], expected)


def test_a_history_shared_by_all_hosts_is_kept_once_and_drawn_alike() -> None:
    replay = ReplayBuffer(capacity=10)
    replay.append(np.arange(3)[:, None, None, None], np.ones((3, 1, 1), bool))
    drawn, anything = replay.draw(in_order(2, 4))
    assert drawn.flatten().tolist() == [2, 0, 1, 2]
    assert anything.all()


def test_hosts_may_draw_a_shared_history_at_places_of_their_own() -> None:
    replay = ReplayBuffer(capacity=10)
    replay.append(np.arange(3)[:, None, None, None], np.ones((3, 1, 1), bool))
    drawn, _ = replay.draw(np.array([[[0, 5], [1, 3]]]))
    assert drawn[..., 0].tolist() == [[[0, 2], [1, 0]]]


def test_places_are_in_the_ring_until_it_passes() -> None:
    replay = ReplayBuffer(capacity=4)
    replay.written = 6  # batches 2 to 5 are in the ring
    numbers = np.array([[[1, 2, 5]], [[0, 4, 3]]])[None].transpose(0, 2, 1, 3)  # (1, replicas 1, hosts 2, guests 3)
    assert replay.places(numbers).tolist() == [[[[4, 2, 1], [5, 0, 3]]]]


def test_inputs_are_forgotten_when_a_batch_of_theirs_is_gone() -> None:
    replay = ReplayBuffer(capacity=2)
    numbers = np.array([[0, 0], [1, 0], [2, 2], [3, 3]])[:, None, None, :]  # guest 2 was silent in round 1
    replay.append(numbers, np.ones((4, 1, 1), bool))
    replay.written = 4  # 0 and 1 are passed
    replay.forget(np.array([[[3, 0]]]))
    assert replay.draw(in_order(0, 2))[0][:, 0, 0].tolist() == [[2, 2], [3, 3]]


def test_an_input_whose_old_batch_a_register_still_holds_is_remembered() -> None:
    replay = ReplayBuffer(capacity=2)
    replay.append(np.array([[2, 0], [3, 0]])[:, None, None, :], np.ones((2, 1, 1), bool))
    replay.written = 4
    replay.forget(np.array([[[3, 0]]]))
    assert replay.draw(in_order(0, 2))[0][:, 0, 0].tolist() == [[2, 0], [3, 0]]


def test_an_input_formed_without_a_guest_is_not_forgotten_once_that_guest_speaks() -> None:
    replay = ReplayBuffer(capacity=10)
    replay.append(np.array([[0, NEVER], [1, 1]])[:, None, None, :], np.ones((2, 1, 1), bool))
    replay.written = 4
    replay.forget(np.array([[[1, 1]]]))
    assert replay.draw(in_order(0, 2))[0][:, 0, 0].tolist() == [[0, NEVER], [1, 1]]
