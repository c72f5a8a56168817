"""Rows that go together, segment by segment."""

import numpy as np
import pytest
import torch

from dvfl.simulation.rounds import Feed
from dvfl.simulation.training_rows import LabelledRows

CPU = torch.device("cpu")


def epoch(rows: LabelledRows) -> torch.Tensor:
    """All rounds of an epoch: (rounds, replicas, batch)."""
    feed = Feed(CPU, rows.iterations)
    rows.load(feed, 0)
    return torch.stack([rows.at(feed, t) for t in range(rows.iterations)])


@pytest.mark.parametrize(("count", "segments"), [(100, 1), (101, 2), (103, 3)])
def test_a_row_takes_those_in_its_place_of_the_other_segments_along(count: int, segments: int) -> None:
    rows = LabelledRows(np.arange(count), 0.2, 12, (1, 2), CPU, segments)
    length = count // segments
    drawn, held = epoch(rows), rows.held
    assert held is not None and rows.rows == length and drawn.shape[2] == rows.batch == 12 // segments * segments
    for batch in (drawn, held):
        first = rows.first(batch)
        assert first.max() < length
        assert torch.equal(rows.followed(first), batch)
        for segment in batch.unflatten(-1, (segments, -1)).unbind(-2):
            assert torch.equal(segment % length, first)
    for replica in range(2):
        trained, kept = (set(part.flatten().tolist()) for part in (drawn[:, replica], held[replica]))
        assert trained.isdisjoint(kept) and trained | kept == set(range(length * segments))


def test_a_row_is_held_out_with_all_its_copies_and_looked_at_as_it_is() -> None:
    rows = LabelledRows(np.arange(50) * 10, 0.2, 16, (1, 2), CPU, copies=3)
    drawn, held = epoch(rows), rows.held
    assert held is not None and held.shape == (2, 10) and held.max() < 50
    assert rows.entries == 200
    for replica in range(2):
        trained = set(drawn[:, replica].flatten().tolist())
        assert trained == {row + 50 * copy for copy in range(4) for row in range(50)} - {
            row + 50 * copy for copy in range(4) for row in held[replica].tolist()
        }
        assert set(rows.trained_on(replica).tolist()) == trained
    assert torch.equal(rows.labels_of(drawn[0]), drawn[0] % 50 * 10)


def test_labels_are_those_of_all_rows_of_a_batch() -> None:
    rows = LabelledRows(np.arange(60) * 10, 0.0, 12, (1,), CPU, 3)
    batch = epoch(rows)[0]
    assert torch.equal(rows.labels_of(batch), batch * 10)


def test_a_batch_smaller_than_the_segments_has_a_row_of_each() -> None:
    rows = LabelledRows(np.arange(60), 0.0, 2, (1,), CPU, 3)
    assert rows.batch == 3 and rows.iterations == 20


def test_an_epoch_takes_one_encoding_of_each_row_and_every_copy() -> None:
    rows = LabelledRows(np.arange(50) * 10, 0.2, 16, (1, 2), CPU, copies=1, partial=3)
    feed = Feed(CPU, rows.iterations)
    taken = np.zeros(5)
    met: dict[int, set[int]] = {}
    for number in range(8):
        rows.load(feed, number)
        drawn = torch.cat([rows.at(feed, t) for t in range(rows.iterations)], 1)[0]
        assert rows.iterations == 5  # of 40 rows and their copies, as without passes
        assert set((drawn % 50).tolist()) == set((rows.trained_on(0) % 50).tolist())
        assert torch.equal(rows.labels_of(drawn[None])[0], drawn % 50 * 10)
        taken += np.bincount(drawn // 50, minlength=5)
        for entry in drawn.tolist():
            if number < 4 and not 50 <= entry < 100:
                met.setdefault(entry % 50, set()).add(entry // 50)
    assert taken.tolist() == [80, 320, 80, 80, 80]
    assert all(passes == {0, 2, 3, 4} for passes in met.values())  # as many epochs as encodings: each once
    assert rows.trained_on(0).max() < 100
