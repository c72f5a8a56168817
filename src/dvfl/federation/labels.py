"""The owner's labels from its CSV or Parquet file, with the slots of their rows."""

from pathlib import Path

import pyarrow as pa

from dvfl.data.reading import read_table
from dvfl.data.targets import Task, label_of, targets, targets_like
from dvfl.federation.owner_training import Labels
from dvfl.federation.slots import find_slots


def open_labels(
    path: Path,
    *,
    id_column: str,
    label_column: str | None,
    slots: Path,
    task: Task = "auto",
    like: Labels | None = None,
) -> Labels:
    """The labels in `path`; with `like`, those of test rows, as numbers or as classes of the training labels."""
    table = read_table(path, id_column)
    target = label_of(table, label_column)
    ids = pa.Table.from_pandas(table.ids.to_frame(), preserve_index=False).column(0)
    found = find_slots(ids, path, id_column, slots)
    if like is not None:
        return Labels(found, targets_like(target, like.classes, path), like.classes)
    y, classes = targets(target, task, path)
    return Labels(found, y, classes)
