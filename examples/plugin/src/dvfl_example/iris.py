"""Iris in two guests: sepals and petals."""

import numpy as np
from sklearn.datasets import load_iris

from dvfl.data import DataSet, VerticalData, Wanted
from dvfl.data.split.splits import classified, column_blocks


def iris(wanted: Wanted) -> VerticalData:
    """150 flowers of three species, 4 columns, embedded in scikit-learn; two guests unless said otherwise."""
    bunch = load_iris()
    views = column_blocks(bunch.data, wanted.guests_or(2))
    names = tuple(str(name) for name in bunch.target_names)
    return classified("iris", views, bunch.target.astype(np.int64), names, wanted, sizes="table")


IRIS = DataSet(iris)
