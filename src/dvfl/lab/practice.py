"""Shares of a data set for practice: every party's own files, as if they had never been together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.files import replacing
from dvfl.parties.numerics.randomness import numpy_generator

Columns = Mapping[str, NDArray[Any]]


def check_practice(data: VerticalData) -> None:
    """Raises where training rows are too few to know every column and every class."""
    mend = "take more rows"
    for share in data.guests:
        # A guest drops such a column, and its table would be narrower than the plan says.
        constant = 0 if share.unit else int((share.train == share.train[:1]).all(axis=0).sum())
        if constant:
            raise UserError(
                f"{data.name}: {constant} columns of {share.name} are constant in {data.rows} training rows; {mend}"
            )
    unknown = sorted(set(data.y_test.tolist()) - set(data.y_train.tolist())) if data.classes else []
    if data.classes and unknown:
        name = data.classes[unknown[0]]
        raise UserError(f"{data.name}: none of {data.rows} training rows is of the class '{name}'; {mend}")


def write_practice(data: VerticalData, folder: Path, guests: Sequence[str], owner: str, seed: int) -> None:
    """Writes `table` and `test_table` for each guest, `labels` and `test_labels` for the owner.

    Rows have ids that say nothing, and every party has them in an order of its own. Where guests hold rows that nobody
    else has (`data.labelled`), so do their tables. A guest whose `unit` is set opens
    its tables with values = "unit", the others with "standardise".
    """
    check_practice(data)
    labels, tests = len(data.y_train), len(data.y_test)
    own = [len(share.train) - labels for share in data.guests]  # rows that nobody else has
    ids = _ids(labels + tests + sum(own), numpy_generator(seed, "practice"))
    labelled, tested, *private = np.split(ids, np.cumsum([labels, tests, *own[:-1]]))
    for number, (name, share, others) in enumerate(zip(guests, data.guests, private, strict=True)):
        trained = np.empty(len(share.train), object)
        where = np.arange(labels) if data.labelled is None else data.labelled[number]
        trained[where] = labelled
        trained[np.setdiff1d(np.arange(len(trained)), where)] = others
        draw = numpy_generator(seed, "practice", name)
        _write_share(folder / name, "table", trained, _columns(share.train), draw)
        _write_share(folder / name, "test_table", tested, _columns(share.test), draw)
    draw = numpy_generator(seed, "practice", owner)
    _write_share(folder / owner, "labels", labelled, {"label": _labels(data, data.y_train)}, draw)
    _write_share(folder / owner, "test_labels", tested, {"label": _labels(data, data.y_test)}, draw)


def _write_share(folder: Path, name: str, ids: NDArray[Any], columns: Columns, draw: np.random.Generator) -> None:
    """Rows in an order of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    order = draw.permutation(len(ids))
    shuffled = {column: values[order] for column, values in columns.items()}
    _write(folder / f"{name}.parquet", {"id": ids[order], **shuffled})


def _write(path: Path, columns: Columns) -> None:
    with replacing(path) as temporary:
        pq.write_table(pa.table(dict(columns)), temporary)


def _ids(count: int, draw: np.random.Generator) -> NDArray[Any]:
    """Different texts; a letter first, so that none looks like a number if it ever goes through CSV."""
    numbers = np.unique(draw.integers(1 << 60, size=2 * count))  # sorted, and twice as many as are needed
    return np.array([f"P{number:015x}" for number in draw.permutation(numbers)[:count].tolist()], object)


def _columns(x: NDArray[np.float32]) -> Columns:
    return {f"c{i}": x[:, i] for i in range(x.shape[1])}


def _labels(data: VerticalData, y: NDArray[Any]) -> NDArray[Any]:
    return y if data.classes is None else np.array(data.classes, object)[y]
