"""The data sets of the paper, and Fashion-MNIST; each loader says where its data come from.

Licences marked (from memory) were not checked against the source when the files were prepared.
"""

import numpy as np

from dvfl.data.sets.sources import read_arrays
from dvfl.data.split.splits import (
    classified,
    hold_out,
    hold_out_by_subject,
    image_strips,
    require_natural,
    table_guests,
)
from dvfl.data.split.vertical import VerticalData, Wanted

DIGITS = tuple("0123456789")
CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def mnist(wanted: Wanted) -> VerticalData:
    """70,000 handwritten digits of 28 x 28 pixels, official split; strips of rows, 4 as in the paper.

    LeCun, Cortes, Burges, "The MNIST database of handwritten digits". Licence: CC BY-SA 3.0 (from memory).
    """
    return _strips("mnist", DIGITS, wanted)


def fashion_mnist(wanted: Wanted) -> VerticalData:
    """70,000 pictures of clothes of 28 x 28 pixels, official split; strips and sizes as for MNIST.

    Xiao, Rasul, Vollgraf 2017, "Fashion-MNIST". Licence: MIT.
    """
    return _strips("fashion_mnist", CLOTHES, wanted)


def credit_card(wanted: Wanted) -> VerticalData:
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
    require_natural(wanted.guests, list(blocks), "credit_card")
    arrays = read_arrays("credit_card", wanted.data_dir)
    views = {name: arrays["X"][:, columns] for name, columns in blocks.items()}
    note = "feature split ours (natural blocks): the paper's is not published"
    return classified("credit_card", views, arrays["y"], ("no default", "default"), wanted, note)


def parkinsons(wanted: Wanted) -> VerticalData:
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
    require_natural(wanted.guests, list(groups), "parkinsons")
    arrays = read_arrays("parkinsons", wanted.data_dir)
    views = {name: arrays["X"][:, np.isin(arrays["feature_group"], parts)] for name, parts in groups.items()}
    y = arrays["y"].astype(np.int64)
    # Three recordings of one voice: a split by rows tests on subjects seen in training.
    if wanted.split.rule == "subject":
        subjects = arrays["subject_id"].astype(np.int64)
        train, test = hold_out_by_subject(subjects, y, wanted.split.seed)
        sides = "three recordings of each subject, all on the same side of the split"
    else:
        train, test = hold_out(len(y), y, seed=wanted.split.seed)
        sides = "three recordings of each subject, on both sides of the split: test rows have voices heard in training"
    return VerticalData(
        "parkinsons",
        table_guests(views, train, test),
        y[train],
        y[test],
        ("healthy", "Parkinson's"),
        sizes="parkinsons",
        note=f"{sides}; feature split ours (natural groups): the paper's is not published",
        split=wanted.split,
    )


def caltech7(wanted: Wanted) -> VerticalData:
    """1,474 images of seven classes of Caltech 101 as six views; features re-extracted, not the published file.

    Images: Li, Andreeto, Ranzato, Perona, "Caltech 101". Licence: CC BY 4.0 (from memory).
    Views after Li, Nie, Huang, Huang 2015, whose feature file could not be obtained.
    """
    views = ("gabor", "wm", "centrist", "hog", "gist", "lbp")
    require_natural(wanted.guests, views, "caltech7")
    arrays = read_arrays("caltech7", wanted.data_dir)
    classes = tuple(str(name) for name in arrays["class_names"])
    note = "features re-extracted from the images, not the published feature file"
    return classified("caltech7", {view: arrays[view] for view in views}, arrays["y"], classes, wanted, note)


def handwritten(wanted: Wanted) -> VerticalData:
    """2,000 handwritten numerals as six views (pixels, Fourier, correlations, Zernike, Karhunen-Loeve, morphology).

    R. P. W. Duin, "Multiple Features", UCI. Licence: CC BY 4.0 (from memory).
    """
    views = ("pix", "fou", "fac", "zer", "kar", "mor")
    require_natural(wanted.guests, views, "handwritten")
    arrays = read_arrays("handwritten", wanted.data_dir)
    return classified("handwritten", {view: arrays[view] for view in views}, arrays["y"], DIGITS, wanted)


def _strips(name: str, classes: tuple[str, ...], wanted: Wanted) -> VerticalData:
    """Images of 28 x 28 pixels in horizontal strips, 4 as in the paper unless said otherwise."""
    arrays = read_arrays(name, wanted.data_dir)
    strips = image_strips(arrays["x_train"], arrays["x_test"], 255.0, wanted.guests_or(4))
    y_train, y_test = (arrays[part].astype(np.int64) for part in ("y_train", "y_test"))
    return VerticalData(name, strips, y_train, y_test, classes, sizes="mnist", split=wanted.split)
