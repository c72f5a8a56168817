"""Encodings as they leave a guest that shortens them and adds noise."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dvfl.parties.release import released

LENGTHS = st.floats(0.01, 100.0)


@given(clip=LENGTHS, scale=LENGTHS, seed=st.integers(0, 1000))
def test_without_noise_no_row_is_longer_than_the_clip_and_short_ones_stay(clip: float, scale: float, seed: int) -> None:
    z = scale * torch.randn(2, 9, 5, generator=torch.Generator().manual_seed(seed))
    left = released(z, clip, 0.0, torch.zeros_like(z))
    assert (left.norm(dim=-1) <= clip * (1 + 1e-5)).all()
    short = z.norm(dim=-1) <= clip
    assert torch.equal(left[short], z[short])
    along = torch.nn.functional.cosine_similarity(left, z, dim=-1)
    assert torch.allclose(along, torch.ones_like(along), atol=1e-4)


def test_noise_is_added_after_the_clip_in_parts_of_it() -> None:
    z, drawn = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, -2.0]])
    assert torch.allclose(released(z, 2.5, 0.5, drawn), torch.tensor([[1.5 + 1.25, 2.0 - 2.5]]))


def test_a_row_of_zeros_stays_what_it_is() -> None:
    assert torch.equal(released(torch.zeros(1, 3), 1.0, 0.0, torch.zeros(1, 3)), torch.zeros(1, 3))
