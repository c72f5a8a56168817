"""The owner's labels from its CSV or Parquet file, with the slots of their rows."""

from functools import partial
from pathlib import Path

import pyarrow as pa

from dvfl.data.tables.reading import read_table
from dvfl.data.tables.targets import Task, label_of, targets, targets_like
from dvfl.errors import UserError
from dvfl.federation.owner.owner_alignment import Aligned
from dvfl.federation.owner.owner_training import Labels
from dvfl.federation.party.settings import PARTY, Federation, OwnerFile, Slots
from dvfl.federation.tables.id_files import slots_file
from dvfl.federation.tables.slots import find_slots


def open_labels(
    path: Path,
    *,
    id_column: str,
    label_column: str | None,
    slots: Path,
    task: Task = "auto",
    like: Labels | None = None,
    some: bool = False,
) -> Labels:
    """The labels in `path`; with `like`, those of test rows, as numbers or as classes of the training labels.

    With `some`, rows without a slot are left out: no guest has them.
    """
    table = read_table(path, id_column)
    target = label_of(table, label_column)
    ids = pa.Table.from_pandas(table.ids.to_frame(), preserve_index=False).column(0)
    found = find_slots(ids, path, id_column, slots, some=some)
    has = found >= 0
    if like is not None:
        return Labels(found[has], targets_like(target, like.classes, path)[has], like.classes)
    y, classes = targets(target, task, path)
    return Labels(found[has], y[has], classes)


def owner_labels(folder: Path, federation: Federation, party: OwnerFile) -> tuple[Labels, Labels | None]:
    """The labels of training rows, and of test rows where there are any."""
    data, aligned = party.data, federation.alignment.way != "given"
    slots = slots_file(folder, data.slots, federation.alignment)
    read = partial(open_labels, id_column=data.id, label_column=data.label, slots=slots, task=data.task, some=aligned)
    labels = read(folder / data.labels)
    return labels, None if data.test_labels is None else read(folder / data.test_labels, like=labels)


def slot_count(folder: Path, federation: Federation, party: OwnerFile) -> Slots:
    """How many slots a run has."""
    if federation.alignment.way == "given":
        if party.slots is None:
            raise UserError(f"{folder / PARTY}: [slots] is not there; with given slots, how many there are is right")
        return party.slots
    aligned = Aligned.read(folder)
    if aligned is None:
        raise UserError(f"{folder}: nothing is aligned yet; dvfl align or dvfl owner does it")
    return Slots(aligned.training, aligned.encode_only + aligned.reserve, aligned.rows)
