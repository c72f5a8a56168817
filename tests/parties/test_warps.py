"""Warps: the same in every strip of a picture, and made of the strip's own pixels."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.parties.numerics.randomness import PATTERNS
from dvfl.parties.objectives.augmentation import image_copies
from dvfl.parties.objectives.warps import Strip, warped

CPU = torch.device("cpu")


def test_a_pattern_is_the_same_warp_in_every_strip_of_a_picture() -> None:
    height, width, count = 28, 28, 200
    picture = torch.rand(1, 1, height, width, generator=torch.Generator().manual_seed(0)).expand(1, count, -1, -1)
    picks, whole = torch.arange(count)[None], Strip(height, width, 0, height)
    warp = image_copies([whole], CPU).altered(picture.flatten(2), picks).view(count, height, width)
    sources = warped(whole)
    row = (sources.corner[:count] // width + sources.down[:count]).reshape(count, height, width)
    for top in (0, 7, 21):
        strip = image_copies([Strip(7, width, top, height)], CPU)
        own = strip.altered(picture[:, :, top : top + 7].flatten(2), picks).view(count, 7, width)
        inside = torch.from_numpy((row[:, top : top + 7] >= top) & (row[:, top : top + 7] <= top + 6))
        assert 0.5 < float(inside.float().mean()) < 1
        torch.testing.assert_close(own[inside], warp[:, top : top + 7][inside], atol=1e-5, rtol=0)


@settings(deadline=None, max_examples=15)
@given(st.sampled_from([(7, 28), (2, 8), (3, 8), (1, 8), (4, 1), (1, 1)]), st.integers(0, 3))
def test_all_values_come_from_the_strip_itself(size: tuple[int, int], above: int) -> None:
    height, width = size
    sources = warped(Strip(height, width, above * height, 4 * height))
    furthest = sources.corner + (width > 1) + width * (height > 1)
    assert sources.corner.min() >= 0 and furthest.max() < height * width
    for share in (sources.across, sources.down):
        assert share.min() >= 0 and share.max() <= 1


def test_what_comes_from_outside_is_the_nearest_edge() -> None:
    """So a picture of one shade stays one, and a strip's upper half never gets the shade of a far lower edge."""
    copies = image_copies([Strip(7, 28, 7, 28)], CPU)
    even = copies.altered(torch.ones(1, PATTERNS, 196), torch.arange(PATTERNS)[None])[0]
    torch.testing.assert_close(even, copies.light.expand_as(even))
    assert 0.5 < float(even.min()) < 0.8 and 1.2 < float(even.max()) < 1.5


def test_warps_leave_pictures_upright_and_in_their_place() -> None:
    """On the mean over all patterns a pixel comes from where it lies, and none from across the picture."""
    sources = warped(Strip(28, 28, 0, 28))
    y = (sources.corner // 28 + sources.down).reshape(PATTERNS, 28, 28)
    x = (sources.corner % 28 + sources.across).reshape(PATTERNS, 28, 28)
    place_y, place_x = np.mgrid[:28, :28]
    inner = (slice(None), slice(6, -6), slice(6, -6))
    for moved, place in ((y, place_y), (x, place_x)):
        assert np.abs((moved - place).mean(0)[inner[1:]]).max() < 0.2
        assert 1 < np.abs(moved - place).max() < 14
