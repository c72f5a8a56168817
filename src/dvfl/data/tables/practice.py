"""Vertically split practice data from one table: a file for each guest and one of the labels."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dvfl.data.sets.datasets import load
from dvfl.data.split.splits import check_guests, hold_out
from dvfl.data.split.vertical import VerticalData
from dvfl.data.tables.columns import refuse_infinite
from dvfl.data.tables.overlap import Rows
from dvfl.data.tables.reading import naming, read_table
from dvfl.data.tables.targets import label_of
from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import numpy_generator

_ID, _LABEL = "id", "label"


@dataclass(frozen=True)
class Whole:
    """One table before it is split: rows with an id and a label, columns already in guests' blocks."""

    id_column: str
    ids: pd.Series
    labels: pd.Series
    blocks: tuple[pd.DataFrame, ...]  # one a guest, all with these rows

    def files(self, rows: Sequence[Rows], labelled: Rows) -> dict[str, pd.DataFrame]:
        """Files of each guest's own rows and of the labels, by name."""
        made = {
            f"guest-{number}": self._with_ids(block, own)
            for number, (block, own) in enumerate(zip(self.blocks, rows, strict=True), 1)
        }
        return {**made, "labels": self._with_ids(self.labels.to_frame(), labelled)}

    def _with_ids(self, frame: pd.DataFrame, rows: Rows) -> pd.DataFrame:
        taken = frame.iloc[rows].reset_index(drop=True)
        taken.insert(0, self.id_column, self.ids.iloc[rows].to_numpy())
        return taken


@dataclass(frozen=True)
class Shares:
    """How rows are handed out."""

    overlap: float  # share of the rows that every guest has
    labelled: int | None  # of those, how many have labels; None: all
    seed: int = 0


def from_table(path: Path, id_column: str, label_column: str, guests: int) -> Whole:
    """A table's columns in blocks of neighbours, as equal as can be."""
    table = read_table(path, id_column)
    labels = label_of(table, label_column)
    columns = table.columns.drop(columns=str(labels.name))
    with naming(path):
        check_guests(guests, columns.shape[1], f"columns besides '{id_column}' and '{label_column}'")
        refuse_infinite(columns)
    blocks = np.array_split(np.arange(columns.shape[1]), guests)
    return Whole(id_column, table.ids, labels, tuple(columns.iloc[:, block] for block in blocks))


def from_dataset(name: str, guests: int | None, data_dir: Path | None, seed: int) -> tuple[Whole, Whole]:
    """Training and test rows of a data set by name, columns as its guests hold them; ids are made up."""
    data = load(name, data_dir=data_dir, guests=guests)
    train, test = len(data.y_train), len(data.y_test)
    numbers = numpy_generator(seed, "practice ids", data.name).permutation(train + test)
    ids = pd.Series([f"E{number:0{len(str(train + test))}d}" for number in numbers])
    return _whole(data, ids[:train], test=False), _whole(data, ids[train:], test=True)


def hand_out(rows: int, guests: int, shares: Shares) -> tuple[list[Rows], Rows]:
    """Which rows each guest gets, and which have labels; all in shuffled order.

    The paper's limited intersection: some rows are everybody's, every other one is at one guest.
    """
    if not 0 <= shares.overlap <= 1:
        raise UserError(f"--overlap {shares.overlap}: a share from 0 to 1 is right")
    common = round(rows * shares.overlap)
    labelled = common if shares.labelled is None else shares.labelled
    if not 1 <= labelled <= common:
        raise UserError(
            f"--labelled {labelled}: from 1 to {common} is right, the rows that all guests have"
            f" (--overlap {shares.overlap} of {rows})"
        )
    draw = numpy_generator(shares.seed, "practice", rows, guests)
    shuffle = draw.permutation(rows)
    own = np.array_split(shuffle[common:], guests)
    return [draw.permutation(np.concatenate([shuffle[:common], part])) for part in own], shuffle[:labelled]


def split(whole: Whole, test: Whole | float, shares: Shares) -> dict[str, pd.DataFrame]:
    """The files of practice data by name; `test`: rows of their own, or the share of rows that become test rows.

    Every guest has all test rows.
    """
    guests, rows = len(whole.blocks), np.arange(len(whole.ids))
    tested = np.arange(0)
    if not isinstance(test, Whole):
        if not 0 <= test < 1:
            raise UserError(f"--test {test}: a share from 0 to below 1 is right")
        if test:
            rows, tested = hold_out(len(rows), _classes(whole.labels), test, shares.seed)
    taken, labelled = hand_out(len(rows), guests, shares)
    files = whole.files([rows[own] for own in taken], rows[labelled])
    source = test if isinstance(test, Whole) else whole
    if isinstance(test, Whole):
        tested = np.arange(len(test.ids))
    if not len(tested):
        return files
    order = [numpy_generator(shares.seed, "practice tests", number).permutation(tested) for number in range(guests)]
    return {**files, **{f"test_{name}": frame for name, frame in source.files(order, tested).items()}}


def write(files: dict[str, pd.DataFrame], folder: Path) -> None:
    """Writes the files into a new folder, which appears whole or not at all."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"--out {folder} is there already; a new folder is right")
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise UserError(f"--out {folder} cannot be made ({error.strerror}); another place is right") from error
    try:
        for name, frame in files.items():
            frame.to_parquet(made / f"{name}.parquet", index=False)
        made.chmod(0o755)
        os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _whole(data: VerticalData, ids: pd.Series, *, test: bool) -> Whole:
    y = data.y_test if test else data.y_train
    labels = pd.Series(y if data.classes is None else np.array(data.classes, object)[y], name=_LABEL)
    tables = [guest.test if test else guest.train for guest in data.guests]
    blocks = tuple(pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])]) for x in tables)
    return Whole(_ID, ids, labels, blocks)


def _classes(labels: pd.Series) -> np.ndarray | None:
    """Numbers of classes to draw test rows by, where labels look like such."""
    codes, values = pd.factorize(labels)
    return codes.astype(np.int64) if len(values) * 2 <= len(labels) else None
