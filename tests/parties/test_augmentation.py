"""Altered copies: what they may be made of."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.parties.numerics.randomness import PATTERNS
from dvfl.parties.objectives.augmentation import Augmentation, image_copies, table_copies
from dvfl.parties.objectives.warps import Strip

CPU = torch.device("cpu")


def picks(stack: int, batch: int, seed: int) -> torch.Tensor:
    return torch.randint(PATTERNS, (stack, 2 * batch), generator=torch.Generator().manual_seed(seed))


def strip(height: int, width: int, top: int = 0) -> Strip:
    return Strip(height, width, top, 4 * height)


def test_a_warped_image_does_not_come_in_again_at_the_other_side() -> None:
    height, width = 7, 28
    left = torch.zeros(1, 1, height, width)
    left[..., :4] = 1.0
    every = torch.arange(PATTERNS)[None]
    x = left.view(1, 1, -1).expand(1, PATTERNS // 2, -1)
    copies = image_copies([strip(height, width)], CPU).copies(x, every)
    assert copies.any()
    assert not copies.view(-1, height, width)[..., -6:].any()


def test_members_have_the_patterns_of_their_own_strips() -> None:
    strips = [strip(7, 28, top) for top in (0, 7, 14, 21)]
    x, chosen = torch.rand(3, 5, 196), picks(3, 5, 0)
    together = image_copies(strips, CPU).of(torch.tensor([2, 0, 2])).copies(x, chosen)
    for number, member in enumerate((2, 0, 2)):
        alone = image_copies([strips[member]], CPU).copies(x[number : number + 1], chosen[number : number + 1])
        assert torch.equal(together[number], alone[0])


def test_strips_of_several_sizes_cannot_share_a_bank() -> None:
    with pytest.raises(ValueError, match="several sizes"):
        image_copies([strip(7, 28), strip(6, 28)], CPU)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 9), st.integers(1, 6), st.integers(0, 999))
def test_a_copy_of_a_tables_row_takes_each_column_from_that_column(batch: int, columns: int, seed: int) -> None:
    x = torch.arange(batch * columns, dtype=torch.float32).view(1, batch, columns)  # no value twice
    copies = table_copies(columns, batch, CPU).copies(x, picks(1, batch, seed))
    assert copies.shape == (1, 2 * batch, columns)
    assert torch.equal(copies % columns, torch.arange(columns).expand_as(copies).float())


def test_the_rest_of_a_tables_row_stays() -> None:
    x = torch.randn(3, 64, 20)
    kept = (table_copies(20, 64, CPU).copies(x, picks(3, 64, 0)) == x.repeat(1, 2, 1)).float().mean()
    assert 0.8 < float(kept) < 0.9


def test_the_two_copies_of_a_row_differ() -> None:
    made: list[Augmentation] = [image_copies([strip(4, 5)], CPU), table_copies(20, 64, CPU)]
    for augmentation in made:
        first, second = augmentation.copies(torch.rand(1, 64, 20), picks(1, 64, 1)).chunk(2, 1)
        assert float((first != second).any(2).float().mean()) > 0.9


def test_what_is_not_known_of_a_row_goes_into_no_other() -> None:
    x = torch.rand(2, 32, 10)
    known = torch.rand(2, 32, 10) < 0.5
    x[~known] = torch.nan
    copies = table_copies(10, 32, CPU).copies(x, picks(2, 32, 2), known)
    assert (copies.isfinite() | ~known.repeat(1, 2, 1)).all()


def test_nothing_is_read_back_from_the_device() -> None:
    meta, x = torch.device("meta"), torch.empty(2, 8, 6, device="meta")
    chosen = torch.empty(2, 16, dtype=torch.int64, device="meta")
    assert image_copies([strip(2, 3)], meta).copies(x, chosen).shape == (2, 16, 6)
    known = torch.empty_like(x, dtype=torch.bool)
    assert table_copies(6, 8, meta).copies(x, chosen, known).shape == (2, 16, 6)
