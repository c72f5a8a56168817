"""Warps of whole pictures, of which every guest applies its own strip: the same ones in every strip of a picture.

A warp turns, stretches, slants and moves a picture about its centre and bends it a little, as handwriting differs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dvfl.parties.numerics.randomness import PATTERNS, numpy_generator

# Chosen on held-out training rows (docs/tuning.md). The most by which a picture is:
_TURNED = 15.0  # degrees
_STRETCHED = 0.15  # logarithm of the factor, across and down apart
_SLANTED = 0.2  # pixels aside for each one up
_ACROSS, _DOWN = 2 / 28, 1 / 28  # moved, of its width and of its height
_BENT = 0.7 / 28  # deviation of the bending, of its size
_KNOTS = 5  # of the bending, each way
_LIGHTER = 0.3  # made lighter or darker, of its values


class Strip(NamedTuple):
    """The rows of pixels of a picture that a guest has, all of them as wide as the picture."""

    height: int
    width: int
    top: int  # rows of the picture above it
    whole: int  # rows of the picture


class Sources(NamedTuple):
    """Where a strip's values come from: between four neighbours each, the strip's own. (patterns, columns) each."""

    corner: NDArray[np.int64]  # column of the upper left neighbour
    across: NDArray[np.float32]  # how far it lies to the right of it, from 0 to 1
    down: NDArray[np.float32]  # and below it
    light: NDArray[np.float32]  # (patterns, 1): what it is multiplied by


def warped(strip: Strip) -> Sources:
    """A strip's part of every pattern; what would come from outside of it comes from its nearest edge."""
    draw = numpy_generator(0, "warps", strip.whole, strip.width)
    each = (PATTERNS, 1)
    angle, slant, wide, high, aside, up = (
        draw.uniform(-most, most, each)
        for most in (
            np.radians(_TURNED),
            _SLANTED,
            _STRETCHED,
            _STRETCHED,
            _ACROSS * strip.width,
            _DOWN * strip.whole,
        )
    )
    light = draw.uniform(1 - _LIGHTER, 1 + _LIGHTER, each)
    knots = draw.normal(0, _BENT, (2, PATTERNS, _KNOTS, _KNOTS))
    rows, columns = np.arange(strip.top, strip.top + strip.height), np.arange(strip.width)
    ways = np.einsum("ya,xb->abyx", _near(rows, strip.whole), _near(columns, strip.width))
    bent_x, bent_y = knots.reshape(2, PATTERNS, -1) @ ways.reshape(_KNOTS**2, -1)
    middle_y, middle_x = (strip.whole - 1) / 2, (strip.width - 1) / 2
    y, x = (rows[:, None] - middle_y + 0 * columns).ravel(), (0 * rows[:, None] + columns - middle_x).ravel()
    cos, sin = np.cos(angle), np.sin(angle)
    from_x = np.exp(wide) * (cos * x + (slant - sin) * y) + aside + bent_x * strip.width + middle_x
    from_y = np.exp(high) * (sin * x + cos * y) + up + bent_y * strip.whole + middle_y - strip.top
    corner_x, across = _between(from_x, strip.width)
    corner_y, down = _between(from_y, strip.height)
    return Sources(corner_y * strip.width + corner_x, across, down, light.astype(np.float32))


def _near(places: NDArray[np.int64], length: int) -> NDArray[np.float64]:
    """How much each place moves with each knot, (places, knots); the squares of a place sum to 1."""
    knots = np.linspace(0, length - 1, _KNOTS)
    width = 0.7 * max(length - 1, 1) / (_KNOTS - 1)
    near = np.exp(-0.5 * ((places[:, None] - knots) / width) ** 2)
    return np.asarray(near / np.linalg.norm(near, axis=1, keepdims=True))


def _between(place: NDArray[np.float64], length: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The neighbour before each place inside a length, and how far beyond it the place lies."""
    inside = np.clip(place, 0, length - 1)
    before = np.minimum(inside.astype(np.int64), max(length - 2, 0))
    return before, (inside - before).astype(np.float32)
