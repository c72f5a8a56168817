"""What the owner trains on: labelled entities, or the aligned and artificial ones of entity augmentation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.align.entities import queues, samples
from dvfl.data.split.vertical import ABSENT, VerticalData
from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.simulation.replica_data import ReplicaData


@dataclass(frozen=True)
class OwnerRows:
    """Rows with a label, in one order for all; those of artificial entities come last."""

    tables: list[Tensor]  # one a guest, (rows, columns), or (replicas, rows, columns)
    labels: NDArray[np.generic]  # (rows,), or (replicas, rows); of an artificial entity, that of its first part
    present: Tensor | None = None  # who has which, (.., rows, guests); None: everyone has all
    parts: NDArray[np.int64] | None = None  # classes that are averaged, (replicas, rows, guests); None: `labels` alone
    artificial: int = 0

    @property
    def count(self) -> int:
        return int(self.labels.shape[-1])

    def sent_by(self, guest: int) -> int:
        """How many rows a guest encodes for the owner, in the first replica."""
        if self.present is None:
            return self.count
        return int(self.present.reshape(-1, *self.present.shape[-2:])[0, :, guest].sum())


def labelled_rows(tables: ReplicaData) -> OwnerRows:
    """The labelled entities as they are."""
    return OwnerRows(tables.labelled(), tables.labels(), tables.labelled_present())


def augmented_rows(tables: ReplicaData, seeds: Sequence[int]) -> OwnerRows:
    """Entities that every guest has, and artificial ones, which every seed puts together anew."""
    each = tables.distinct() if not tables.shared else tables.distinct() * len(seeds)
    counts = {samples(_present(one)) for one in each}
    if len(counts) > 1:
        raise ValueError("entity augmentation gives replicas of one stack different numbers of rows")
    chosen = [
        queues(_present(one), numpy_generator(seed, "entities")) for one, seed in zip(each, seeds, strict=True)
    ]  # (samples, guests) each
    parts = np.stack([one.y_train[queue].astype(np.int64) for one, queue in zip(each, chosen, strict=True)])
    rows = []
    for guest in range(len(each[0].guests)):
        own = [one.train_of(guest, queue[:, guest]) for one, queue in zip(each, chosen, strict=True)]
        rows.append(torch.from_numpy(np.stack(own)))
    return OwnerRows(rows, np.ascontiguousarray(parts[..., 0]), parts=parts, artificial=counts.pop()[1])


def check_augmentation(data: VerticalData) -> None:
    """Refuses what cannot be augmented."""
    if data.classes is None:
        raise UserError(
            "entity_augmentation: the labels are numbers, and only classes can be averaged so; leave it out"
        )
    aligned, artificial = samples(_present(data))
    if aligned + artificial < 2:
        raise UserError(
            f"entity_augmentation: {aligned} labelled rows are at every guest, and {artificial} more can be put"
            " together; at least 2 are needed"
        )


def _present(data: VerticalData) -> NDArray[np.bool_]:
    if data.labelled is None:
        return np.ones((len(data.y_train), len(data.guests)), bool)
    return np.asarray(data.labelled.T != ABSENT)
