"""How sure the owner may be: one temperature for its class scores, and how far confidence then is from the truth.

Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks" (2017).
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

BINS = 15  # of equal width
_LEAST, _MOST = 0.01, 100.0  # temperatures: likelihood has no maximum where all rows are right, or all are guesses


def temperature(scores: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """By which scores (rows, classes) are divided for the labels to be most likely; 1 where there are no rows."""
    if not len(labels):
        return 1.0
    exact = scores.astype(np.float64)

    def loss(log_temperature: float) -> float:
        return negative_log_likelihood(exact / math.exp(log_temperature), labels)

    # In its logarithm the loss has one minimum, as it has in 1 / temperature, where it is convex.
    found = minimize_scalar(loss, bounds=(math.log(_LEAST), math.log(_MOST)), method="bounded", options={"xatol": 1e-5})
    return math.exp(float(found.x)) if found.fun < loss(0.0) else 1.0


def probabilities(scores: NDArray[np.floating], by: float = 1.0) -> NDArray[np.float64]:
    """Of each class (rows, classes), from scores before the softmax and their temperature."""
    exact = scores.astype(np.float64) / by
    weights = np.exp(exact - exact.max(1, keepdims=True))
    made: NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
    return made


def negative_log_likelihood(scores: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """Mean over rows."""
    top = scores.max(1, keepdims=True)
    total = np.log(np.exp(scores - top).sum(1)) + top[:, 0]
    return float((total - scores[np.arange(len(labels)), labels]).mean())


def calibration_error(chances: NDArray[np.floating], labels: NDArray[np.integer], bins: int = BINS) -> float:
    """The expected calibration error of probabilities (rows, classes): from 0 to 1.

    Rows are put into bins by their confidence, the largest probability; a bin counts by how far its mean confidence is
    from the share of its rows that are right, weighted by its rows.
    """
    if not len(labels):
        return 0.0
    confidence, right = chances.max(1), chances.argmax(1) == labels
    # A bin has its upper end, as in the paper: a confidence of 1 is in the last.
    place = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(place, weights=confidence - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(labels))
