"""The data sets known by name; each loader says where its data come from.

Licences marked (from memory) were not checked against the source when the files were prepared.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dvfl.data.sources import read_arrays
from dvfl.data.splits import (
    column_blocks,
    hold_out,
    hold_out_by_subject,
    image_strips,
    require_natural,
    table_guests,
)
from dvfl.data.vertical import VerticalData
from dvfl.errors import UserError, nearest

Loader = Callable[[Path | None, int | None], VerticalData]

DIGITS = tuple("0123456789")


def load(name: str, *, data_dir: Path | None = None, guests: int | None = None) -> VerticalData:
    """The data set `name`, shared among `guests` guests (its own number where None)."""
    if name not in DATASETS:
        raise UserError(f"no data set is called '{name}'{nearest(name, DATASETS)}")
    return DATASETS[name](data_dir, guests)


def digits(data_dir: Path | None, guests: int | None) -> VerticalData:
    """1,797 handwritten digits of 8 x 8 pixels, embedded; strips of rows, 4 unless said otherwise.

    Alpaydin and Kaynak 1998, "Optical Recognition of Handwritten Digits", UCI; the copy in scikit-learn.
    Licence: CC BY 4.0 (from memory).
    """
    bunch = _sklearn("digits")()
    y = bunch.target.astype(np.int64)
    train, test = hold_out(len(y), y)
    strips = image_strips(bunch.images[train], bunch.images[test], 16.0, 4 if guests is None else guests)
    return VerticalData("digits", strips, y[train], y[test], DIGITS)


def mnist(data_dir: Path | None, guests: int | None) -> VerticalData:
    """70,000 handwritten digits of 28 x 28 pixels, official split; strips of rows, 4 as in the paper.

    LeCun, Cortes, Burges, "The MNIST database of handwritten digits". Licence: CC BY-SA 3.0 (from memory).
    """
    arrays = read_arrays("mnist.npz", data_dir)
    strips = image_strips(arrays["x_train"], arrays["x_test"], 255.0, 4 if guests is None else guests)
    y_train, y_test = (arrays[part].astype(np.int64) for part in ("y_train", "y_test"))
    return VerticalData("mnist", strips, y_train, y_test, DIGITS, sizes="mnist")


def credit_card(data_dir: Path | None, guests: int | None) -> VerticalData:
    """30,000 credit card clients, default or not; the paper's split is not published, ours is four natural blocks.

    Yeh and Lien 2009, Expert Systems with Applications 36(2), "Default of Credit Card Clients", UCI.
    Licence: CC BY 4.0 (from memory).
    """
    blocks = {
        "profile": slice(0, 5),
        "repayment-status": slice(5, 11),
        "bill-amounts": slice(11, 17),
        "payment-amounts": slice(17, 23),
    }
    require_natural(guests, list(blocks), "credit_card")
    arrays = read_arrays("credit_card.npz", data_dir)
    views = {name: arrays["X"][:, columns] for name, columns in blocks.items()}
    note = "feature split ours (natural blocks): the paper's is not published"
    return _classified("credit_card", views, arrays["y"], ("no default", "default"), note)


def parkinsons(data_dir: Path | None, guests: int | None) -> VerticalData:
    """756 voice recordings of 252 subjects, Parkinson's disease or healthy; guests are groups of speech features.

    Sakar et al. 2019, Applied Soft Computing 74, "Parkinson's Disease Classification", UCI.
    Licence: CC BY 4.0 (from memory).
    """
    # The six small groups (55 columns of 753) are one guest: alone, gender would be a guest of one column.
    groups = {
        "baseline": (
            "gender",
            "Baseline Features",
            "Intensity Parameters",
            "Formant Frequencies",
            "Bandwidth Parameters",
            "Vocal Fold",
        ),
        "mfcc": ("MFCC",),
        "wavelet": ("Wavelet Features",),
        "tqwt": ("TQWT Features",),
    }
    require_natural(guests, list(groups), "parkinsons")
    arrays = read_arrays("parkinsons.npz", data_dir)
    views = {name: arrays["X"][:, np.isin(arrays["feature_group"], parts)] for name, parts in groups.items()}
    y = arrays["y"].astype(np.int64)
    # Three recordings of one voice: a split by rows would test on subjects seen in training.
    train, test = hold_out_by_subject(arrays["subject_id"].astype(np.int64), y)
    return VerticalData(
        "parkinsons",
        table_guests(views, train, test),
        y[train],
        y[test],
        ("healthy", "Parkinson's"),
        sizes="parkinsons",
        note="split by subject; feature split ours (natural groups): the paper's is not published",
    )


def caltech7(data_dir: Path | None, guests: int | None) -> VerticalData:
    """1,474 images of seven classes of Caltech 101 as six views; features re-extracted, not the published file.

    Images: Li, Andreeto, Ranzato, Perona, "Caltech 101". Licence: CC BY 4.0 (from memory).
    Views after Li, Nie, Huang, Huang 2015, whose feature file could not be obtained.
    """
    views = ("gabor", "wm", "centrist", "hog", "gist", "lbp")
    require_natural(guests, views, "caltech7")
    arrays = read_arrays("caltech7_reextracted.npz", data_dir)
    classes = tuple(str(name) for name in arrays["class_names"])
    note = "features re-extracted from the images, not the published feature file"
    return _classified("caltech7", {view: arrays[view] for view in views}, arrays["y"], classes, note)


def handwritten(data_dir: Path | None, guests: int | None) -> VerticalData:
    """2,000 handwritten numerals as six views (pixels, Fourier, correlations, Zernike, Karhunen-Loeve, morphology).

    R. P. W. Duin, "Multiple Features", UCI. Licence: CC BY 4.0 (from memory).
    """
    views = ("pix", "fou", "fac", "zer", "kar", "mor")
    require_natural(guests, views, "handwritten")
    arrays = read_arrays("handwritten.npz", data_dir)
    return _classified("handwritten", {view: arrays[view] for view in views}, arrays["y"], DIGITS)


def breast_cancer(data_dir: Path | None, guests: int | None) -> VerticalData:
    """569 tumours, malignant or benign, 30 columns, embedded; contiguous blocks of columns, 3 unless said otherwise.

    Wolberg, Mangasarian, Street, Street 1995, "Breast Cancer Wisconsin (Diagnostic)", UCI; the copy in scikit-learn.
    Licence: CC BY 4.0 (from memory).
    """
    return _embedded("breast_cancer", _sklearn("breast_cancer")(), guests)


def wine(data_dir: Path | None, guests: int | None) -> VerticalData:
    """178 wines of three cultivars, 13 columns, embedded; contiguous blocks of columns, 3 unless said otherwise.

    Aeberhard and Forina 1991, "Wine", UCI; the copy in scikit-learn. Licence: CC BY 4.0 (from memory).
    """
    return _embedded("wine", _sklearn("wine")(), guests)


def diabetes(data_dir: Path | None, guests: int | None) -> VerticalData:
    """442 patients, disease progression after a year (regression), 10 columns, embedded; 3 blocks by default.

    Efron, Hastie, Johnstone, Tibshirani 2004, "Least Angle Regression", Annals of Statistics 32; the copy in
    scikit-learn. Licence: none stated that we know of.
    """
    bunch = _sklearn("diabetes")(scaled=False)
    train, test = hold_out(len(bunch.target), None)
    views = column_blocks(bunch.data, 3 if guests is None else guests)
    y = bunch.target.astype(np.float32)
    return VerticalData("diabetes", table_guests(views, train, test), y[train], y[test], None)


DATASETS: Mapping[str, Loader] = {
    loader.__name__: loader
    for loader in (
        digits, mnist, credit_card, parkinsons, caltech7, handwritten, breast_cancer, wine, diabetes
    )
}  # fmt: skip


def _embedded(name: str, bunch: Any, guests: int | None) -> VerticalData:
    """A classification table of scikit-learn in contiguous blocks."""
    views = column_blocks(bunch.data, 3 if guests is None else guests)
    return _classified(name, views, bunch.target, tuple(str(c) for c in bunch.target_names), sizes="table")


def _classified(
    name: str,
    views: Mapping[str, NDArray[np.floating]],
    labels: NDArray[Any],
    classes: tuple[str, ...],
    note: str = "",
    sizes: str | None = None,
) -> VerticalData:
    """One guest a view, a stratified split, standardised columns; sized by the data set's own rule unless said."""
    y = labels.astype(np.int64)
    train, test = hold_out(len(y), y)
    guests = table_guests(views, train, test)
    return VerticalData(name, guests, y[train], y[test], classes, sizes=sizes or name, note=note)


def _sklearn(name: str) -> Callable[..., Any]:
    """A loader of scikit-learn's, which is imported here since real parties start often and never need it."""
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")  # type: ignore[no-any-return]
