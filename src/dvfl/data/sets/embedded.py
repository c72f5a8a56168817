"""The data sets that scikit-learn brings along; each loader says where its data come from.

Licences marked (from memory) were not checked against the source.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dvfl.data.split.splits import classified, column_blocks, hold_out, image_strips, table_guests
from dvfl.data.split.vertical import VerticalData, Wanted


def digits(wanted: Wanted) -> VerticalData:
    """1,797 handwritten digits of 8 x 8 pixels, embedded; strips of rows, 4 unless said otherwise.

    Alpaydin and Kaynak 1998, "Optical Recognition of Handwritten Digits", UCI; the copy in scikit-learn.
    Licence: CC BY 4.0 (from memory).
    """
    bunch = _sklearn("digits")()
    y = bunch.target.astype(np.int64)
    train, test = hold_out(len(y), y, seed=wanted.split.seed)
    strips = image_strips(bunch.images[train], bunch.images[test], 16.0, wanted.guests_or(4))
    return VerticalData("digits", strips, y[train], y[test], tuple("0123456789"), split=wanted.split)


def breast_cancer(wanted: Wanted) -> VerticalData:
    """569 tumours, malignant or benign, 30 columns, embedded; contiguous blocks of columns, 3 unless said otherwise.

    Wolberg, Mangasarian, Street, Street 1995, "Breast Cancer Wisconsin (Diagnostic)", UCI; the copy in scikit-learn.
    Licence: CC BY 4.0 (from memory).
    """
    return _embedded("breast_cancer", _sklearn("breast_cancer")(), wanted)


def wine(wanted: Wanted) -> VerticalData:
    """178 wines of three cultivars, 13 columns, embedded; contiguous blocks of columns, 3 unless said otherwise.

    Aeberhard and Forina 1991, "Wine", UCI; the copy in scikit-learn. Licence: CC BY 4.0 (from memory).
    """
    return _embedded("wine", _sklearn("wine")(), wanted)


def diabetes(wanted: Wanted) -> VerticalData:
    """442 patients, disease progression after a year (regression), 10 columns, embedded; 3 blocks by default.

    Efron, Hastie, Johnstone, Tibshirani 2004, "Least Angle Regression", Annals of Statistics 32; the copy in
    scikit-learn. Licence: none stated that we know of.
    """
    bunch = _sklearn("diabetes")(scaled=False)
    train, test = hold_out(len(bunch.target), None, seed=wanted.split.seed)
    views = column_blocks(bunch.data, wanted.guests_or(3))
    y = bunch.target.astype(np.float32)
    return VerticalData("diabetes", table_guests(views, train, test), y[train], y[test], None, split=wanted.split)


def _embedded(name: str, bunch: Any, wanted: Wanted) -> VerticalData:
    """A classification table of scikit-learn in contiguous blocks."""
    views = column_blocks(bunch.data, wanted.guests_or(3))
    return classified(name, views, bunch.target, tuple(str(c) for c in bunch.target_names), wanted, sizes="table")


def _sklearn(name: str) -> Callable[..., Any]:
    """A loader of scikit-learn's, which is imported here since real parties start often and never need it."""
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")  # type: ignore[no-any-return]
