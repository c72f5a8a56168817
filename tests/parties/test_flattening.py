"""Encodings whose directions are all equally strong."""

import torch
from torch import Tensor

from dvfl.release.flattening import Flattening


def encodings() -> Tensor:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(2, 4000, 6, generator=draw) @ torch.randn(2, 6, 6, generator=draw) + 3


def test_every_direction_has_the_same_variance() -> None:
    z = encodings()
    flat = Flattening.of(z)(z)
    for own in flat:
        torch.testing.assert_close(torch.cov(own.T, correction=0), torch.eye(6), atol=2e-3, rtol=0)
    torch.testing.assert_close(flat.mean(1), torch.zeros(2, 6), atol=1e-4, rtol=0)


def test_a_silent_direction_stays_silent_and_the_mean_square_is_one() -> None:
    z = encodings()
    z[..., 2] = 7.0
    flat = Flattening.of(z)(z)
    assert float(flat.var(1).min()) < 1e-6
    torch.testing.assert_close(flat.square().mean((1, 2)), torch.ones(2), atol=1e-2, rtol=0)


def test_the_map_is_symmetric_so_that_directions_stay_where_they_were() -> None:
    """A map by principal directions would turn whenever two of them change places."""
    weights = Flattening.of(encodings()).weights
    torch.testing.assert_close(weights, weights.mT, atol=1e-4, rtol=1e-4)


def test_the_identity_changes_nothing() -> None:
    z = encodings()[:, :, :4]
    assert torch.equal(Flattening.identity(2, 4, device=z.device)(z), z)
