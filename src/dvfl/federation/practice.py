"""Shares of a data set for practice: every party's own files, as if they had never been together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dvfl.data.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.files import replacing
from dvfl.parties.randomness import numpy_generator

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

    Rows have ids that say nothing, and every party has them in an order of its own. A guest whose `unit` is set opens
    its tables with values = "unit", the others with "standardise".
    """
    check_practice(data)
    ids = _ids(data.rows + len(data.y_test), numpy_generator(seed, "practice"))
    for name, share in zip(guests, data.guests, strict=True):
        files = {"table": _columns(share.train), "test_table": _columns(share.test)}
        _write_share(folder / name, files, ids, numpy_generator(seed, "practice", name))
    files = {"labels": {"label": _labels(data, data.y_train)}, "test_labels": {"label": _labels(data, data.y_test)}}
    _write_share(folder / owner, files, ids, numpy_generator(seed, "practice", owner))


def _write_share(folder: Path, files: Mapping[str, Columns], ids: NDArray[Any], draw: np.random.Generator) -> None:
    """The files' rows are those of `ids`, one file's after the other's."""
    folder.mkdir(parents=True, exist_ok=True)
    start = 0
    for name, columns in files.items():
        count = len(next(iter(columns.values())))
        order = draw.permutation(count)
        shuffled = {column: values[order] for column, values in columns.items()}
        _write(folder / f"{name}.parquet", {"id": ids[start : start + count][order], **shuffled})
        start += count


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
