"""Real digits, embedded in scikit-learn, as small vertical data."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from dvfl.data.vertical import GuestTable, VerticalData

CLASSES = tuple("0123456789")


def vertical(
    images: NDArray[np.float32], y: NDArray[np.int64], train: int, test: int, parts: Sequence[int], sizes: str
) -> VerticalData:
    """Blocks of columns, `parts` wide, one a guest; rows in a fixed shuffle, since the file is ordered by writer."""
    order = np.random.default_rng(0).permutation(len(y))
    images, y = images[order], y[order]
    assert sum(parts) == images.shape[1]
    blocks = np.split(images, np.cumsum(parts)[:-1], axis=1)
    guests = tuple(
        GuestTable(f"guest-{i + 1}", block[:train].copy(), block[-test:].copy(), unit=True)
        for i, block in enumerate(blocks)
    )
    return VerticalData("digits", guests, y[:train], y[-test:], CLASSES, sizes=sizes)


@pytest.fixture(scope="session")
def digits() -> VerticalData:
    """Four strips of 16 columns, 600 training rows."""
    images, y = load_digits(return_X_y=True)
    return vertical((images / 16).astype(np.float32), y.astype(np.int64), 600, 400, (16,) * 4, "table")


@pytest.fixture(scope="session")
def unequal_digits() -> VerticalData:
    """Guests of three shapes, the first and the third alike."""
    images, y = load_digits(return_X_y=True)
    return vertical((images / 16).astype(np.float32), y.astype(np.int64), 600, 400, (16, 8, 16, 24), "table")


@pytest.fixture(scope="session")
def large_digits() -> VerticalData:
    """Enlarged to the paper's 28 x 28 pixels: four strips of 196 columns, 25 batches of 64."""
    bunch = load_digits()
    images = np.kron(bunch.images / 16, np.ones((4, 4)))[:, 2:30, 2:30].reshape(-1, 784)
    return vertical(images.astype(np.float32), bunch.target.astype(np.int64), 1600, 197, (196,) * 4, "mnist")
