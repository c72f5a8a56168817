"""Keyed draws: they depend on seed and purpose alone."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dvfl.parties.numerics.randomness import batches, numpy_generator, patterns, torch_generator

SEEDS = st.integers(0, 2**63)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, int]:
    rows = draw(st.integers(1, 300))
    return rows, draw(st.integers(1, rows))


@given(shapes(), SEEDS)
def test_every_batch_is_full_and_every_row_appears(shape: tuple[int, int], seed: int) -> None:
    rows, batch = shape
    order = batches(rows, batch, seed, "rows", 0)
    assert order.shape == (-(-rows // batch), batch)
    counts = np.bincount(order.flatten(), minlength=rows)
    assert len(counts) == rows
    assert counts.min() >= 1
    assert counts.max() <= 2
    assert (counts == 2).sum() == order.size - rows


@given(SEEDS)
def test_batches_depend_on_seed_and_key_alone(seed: int) -> None:
    first = batches(200, 16, seed, "rows", 3)
    np.testing.assert_array_equal(first, batches(200, 16, seed, "rows", 3))
    assert (first != batches(200, 16, seed, "rows", 4)).any()
    assert (first != batches(200, 16, seed + 1, "rows", 3)).any()
    assert (first != batches(200, 16, seed, "owner", 3)).any()


@given(SEEDS)
def test_generators_of_different_keys_differ_and_of_equal_keys_agree(seed: int) -> None:
    keys = [("guest", 0), ("guest", 1), ("host", 0), ("guest", "0")]
    draws = [numpy_generator(seed, *key).random(4).tolist() for key in keys]
    draws += [torch.rand(4, generator=torch_generator(seed, *key)).tolist() for key in keys]
    assert len({tuple(draw) for draw in draws}) == len(draws)
    assert numpy_generator(seed, "guest", 0).random(4).tolist() == draws[0]
    assert torch.rand(4, generator=torch_generator(seed, "guest", 0)).tolist() == draws[4]


def test_patterns_keep_their_share() -> None:
    masks = patterns(4096, 20, 0.3, 0, "dropout")
    assert masks.shape == (4096, 20)
    assert abs(masks.float().mean() - 0.3) < 0.01
    assert torch.equal(masks, patterns(4096, 20, 0.3, 0, "dropout"))
