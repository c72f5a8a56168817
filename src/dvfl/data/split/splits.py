"""From one table or image set to guests' tables: test rows held out, columns standardised, columns handed out."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dvfl.data.split.moments import Matrix, Moments
from dvfl.data.split.vertical import GuestTable, VerticalData, Wanted
from dvfl.errors import UserError
from dvfl.parties.objectives.warps import Strip

Rows = NDArray[np.intp]


def hold_out(rows: int, classes: NDArray[np.int64] | None, fraction: float = 0.2, seed: int = 0) -> tuple[Rows, Rows]:
    """Training and test rows; every class in both where it has the rows for it.

    The seed is 0 unless splits are repeated: one split for everyone, so that results can be set side by side.
    """
    from sklearn.model_selection import train_test_split  # here: real parties start often, and never need it

    test = min(rows - 1, math.ceil(rows * fraction))  # as scikit-learn rounds, and a training row at least
    train, held = train_test_split(
        np.arange(rows), test_size=test, random_state=seed, stratify=_strata(classes, rows - test, test)
    )
    return np.asarray(train, np.intp), np.asarray(held, np.intp)


def hold_out_by_subject(subjects: NDArray[np.int64], y: NDArray[np.int64], seed: int = 0) -> tuple[Rows, Rows]:
    """As `hold_out`, with all rows of one subject on the same side."""
    names, first = np.unique(subjects, return_index=True)
    _, held = hold_out(len(names), y[first], seed=seed)
    tested = np.isin(subjects, names[held])
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def moments(x: NDArray[np.float64]) -> tuple[Matrix, Matrix]:
    """Mean and population standard deviation of each column, NaN left out; 0 and 0 where nothing varies."""
    return Moments.of(x).scales()


def standardise(x: NDArray[np.float64], mean: Matrix, std: Matrix) -> Matrix:
    """`(x - mean) / std`, and 0 where std is 0; NaN stays NaN."""
    # Halves, so that the difference of two values near the largest float stays finite.
    z: Matrix = (x * 0.5 - mean * 0.5) / np.where(std > 0, std * 0.5, 1.0)
    z[:, std == 0] = 0.0
    return z


def table_guest(name: str, x: NDArray[np.floating], train: Rows, test: Rows) -> GuestTable:
    """A guest that holds the columns `x`, standardised by its training rows."""
    wide = x.astype(np.float64)
    z = standardise(wide, *moments(wide[train])).astype(np.float32)
    return GuestTable(name, z[train], z[test])


def table_guests(views: Mapping[str, NDArray[np.floating]], train: Rows, test: Rows) -> tuple[GuestTable, ...]:
    """One guest for each view."""
    return tuple(table_guest(name, x, train, test) for name, x in views.items())


def classified(
    name: str,
    views: Mapping[str, NDArray[np.floating]],
    labels: NDArray[Any],
    classes: tuple[str, ...],
    wanted: Wanted,
    note: str = "",
    sizes: str | None = None,
) -> VerticalData:
    """One guest a view, a random split by class, standardised columns; sized by the data set's own rule unless said."""
    y = labels.astype(np.int64)
    train, test = hold_out(len(y), y, seed=wanted.split.seed)
    guests = table_guests(views, train, test)
    return VerticalData(name, guests, y[train], y[test], classes, sizes=sizes or name, note=note, split=wanted.split)


def column_blocks(x: NDArray[np.floating], guests: int) -> dict[str, NDArray[np.floating]]:
    """The columns in `guests` contiguous blocks, as equal as can be."""
    check_guests(guests, x.shape[1], "columns")
    parts = np.array_split(np.arange(x.shape[1]), guests)
    return {f"columns-{part[0]}-{part[-1]}": x[:, part] for part in parts}


def image_strips(
    train: NDArray[np.generic], test: NDArray[np.generic], largest: float, guests: int
) -> tuple[GuestTable, ...]:
    """Horizontal strips of the images (rows, height, width), top to bottom, values divided by `largest`."""
    height, width = train.shape[1:]
    check_guests(guests, height, "rows of pixels")

    def strip(images: NDArray[np.generic], part: NDArray[np.intp]) -> NDArray[np.float32]:
        cut = images[:, part[0] : part[-1] + 1].reshape(len(images), -1)
        return cut.astype(np.float32) / np.float32(largest)

    return tuple(
        GuestTable(
            f"rows-{part[0]}-{part[-1]}",
            strip(train, part),
            strip(test, part),
            unit=True,
            image=Strip(len(part), width, int(part[0]), height),
        )
        for part in np.array_split(np.arange(height), guests)
    )


def check_guests(guests: int, most: int, what: str) -> None:
    """Refuses a number of guests that the data cannot be shared among."""
    if not 1 <= guests <= most:
        raise UserError(f"{guests} guests cannot share {most} {what}: from 1 to {most} guests are possible")


def require_natural(guests: int | None, views: Sequence[str], name: str) -> None:
    """Refuses another number of guests than the data set has views."""
    if guests is not None and guests != len(views):
        raise UserError(
            f"{name} has {len(views)} natural guests ({', '.join(views)}) and cannot be shared among {guests}:"
            f" leave the number out or say {len(views)}"
        )


def _strata(classes: NDArray[np.int64] | None, train: int, test: int) -> NDArray[np.int64] | None:
    if classes is None:
        return None
    _, counts = np.unique(classes, return_counts=True)
    possible = counts.min() >= 2 and min(train, test) >= len(counts)
    return classes if possible else None
