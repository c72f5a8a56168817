"""What a user gives an estimator, checked and made usable: labels, seeds, devices, parameters."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d

from dvfl.errors import UserError


def one_dimensional(y: Any) -> NDArray[Any]:
    """The labels as an array of one dimension, nothing missing in it."""
    if isinstance(getattr(y, "dtype", None), pd.api.extensions.ExtensionDtype):  # pandas' own: whole numbers stay such
        y = pd.Series(y)
        y = y.to_numpy() if not y.isna().any() else y.to_numpy(dtype=object)
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if pd.isna(labels).any():
        raise ValueError("Input y contains NaN or other missing values; every row needs a label")
    assert_all_finite(labels, input_name="y")
    return labels


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    if random_state is None:
        return secrets.randbits(31)  # scikit-learn's own None would draw from NumPy's global state
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def device_of(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device={name!r}: 'cpu' or 'cuda' is right") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r}: PyTorch finds no CUDA here; 'cpu' is right")
    return device


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic | np.ndarray | pd.Index):
        return value.tolist()
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


@contextmanager
def as_value_errors() -> Iterator[None]:
    """What the user can mend, in the class of errors that scikit-learn's users expect."""
    try:
        yield
    except UserError as error:
        raise ValueError(str(error)) from error
