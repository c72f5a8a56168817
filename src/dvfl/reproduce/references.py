"""Lines to measure a federation by: what one model reaches on the pooled columns, if they could be pooled."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from dvfl.data.split.vertical import VerticalData, intersection


def gradient_boosting(data: VerticalData, seed: int) -> float:
    """Test accuracy in percent of scikit-learn's histogram gradient boosting with its own settings."""
    model = HistGradientBoostingClassifier(random_state=seed)
    with threadpool_limits(1, user_api="openmp"):  # its threads spin where others work too, and gain nothing here
        return _accuracy(model.fit(*_pooled(data)), data)


def support_vectors(data: VerticalData, seed: int) -> float:
    """Test accuracy in percent of an RBF support vector machine (C 10, gamma by the data's variance)."""
    return _accuracy(SVC(C=10.0, gamma="scale").fit(*_pooled(data)), data)


REFERENCES: Mapping[str, Callable[[VerticalData, int], float]] = {
    "boosting": gradient_boosting,
    "svm": support_vectors,
}


def _pooled(data: VerticalData) -> tuple[NDArray[np.float32], NDArray[np.generic]]:
    """All columns of the labelled rows."""
    common = intersection(data)
    return np.hstack([guest.train for guest in common.guests]), common.y_train


def _accuracy(model: HistGradientBoostingClassifier | SVC, data: VerticalData) -> float:
    found = model.predict(np.hstack([guest.test for guest in data.guests]))
    return float((found == data.y_test).mean() * 100)
