"""The data of a stack's replicas: the same for all, or of one shape for each."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.split.vertical import ABSENT, VerticalData, completed
from dvfl.errors import UserError

LEAST_COMMON = 2  # labelled rows that every guest has

GivenData = VerticalData | Sequence[VerticalData]  # for all replicas, or one for each


def with_common_labels(given: GivenData) -> GivenData:
    """The data with the labels of entities that every guest has: other strategies than DVFL can use no others."""
    if isinstance(given, VerticalData):
        return _with_common_labels(given)
    return [_with_common_labels(one) for one in given]


class ReplicaData:
    """Tables and labels as tensors: (rows, ..) where all replicas share them, (replicas, rows, ..) where not.

    Where replicas have their own, tables are put together on the `device`: most replicas share theirs with some others.
    """

    def __init__(self, given: GivenData, replicas: int, device: torch.device | str = "cpu") -> None:
        each = (given,) * replicas if isinstance(given, VerticalData) else tuple(given)
        if len(each) != replicas:
            raise ValueError(f"data for {len(each)} replicas; {replicas} is right")
        self.first, self._device = each[0], torch.device(device)
        self._each = each[:1] if all(one is each[0] for one in each) else each
        for one in self._each:
            _check_rows(one)
        if len({_shape(one) for one in self._each}) > 1:
            raise ValueError("replicas of one stack need data of one shape")
        if self.first.classes is None and any(one.y_train is not self.first.y_train for one in self._each):
            raise ValueError("replicas with labels of their own need classes")  # each would have a unit of its own

    @property
    def shared(self) -> bool:
        """Whether all replicas have the same data."""
        return len(self._each) == 1

    def distinct(self) -> tuple[VerticalData, ...]:
        """The data of each replica, or what they share."""
        return self._each

    def train(self) -> list[Tensor]:
        """What each guest trains on."""
        return self._tables([[guest.train for guest in one.guests] for one in self._each])

    def labelled(self) -> list[Tensor]:
        """Each guest's rows of the labelled entities, in the labels' order; zeros where it has none."""
        return self._tables([_labelled_rows(one) for one in self._each])

    def labelled_present(self) -> Tensor | None:
        """Who has which of them, (rows, guests) or (replicas, rows, guests); None where everyone has all."""
        return self._present([None if one.labelled is None else one.labelled != ABSENT for one in self._each])

    def test(self) -> list[Tensor]:
        """Each guest's test rows."""
        return self._tables([[guest.test for guest in one.guests] for one in self._each])

    def test_present(self) -> Tensor | None:
        """Who has which of them, as `labelled_present` says it."""
        return self._present([one.tested for one in self._each])

    def labels(self) -> NDArray[np.generic]:
        """Of the labelled rows."""
        return self._labels([one.y_train for one in self._each])

    def test_labels(self) -> NDArray[np.generic]:
        """Of the test rows."""
        return self._labels([one.y_test for one in self._each])

    def _tables(self, each: Sequence[Sequence[NDArray[np.float32]]]) -> list[Tensor]:
        return [self._table(guest) for guest in zip(*each, strict=True)]

    def _table(self, each: Sequence[NDArray[np.float32]]) -> Tensor:
        """One guest's, of each replica; a table that several replicas have moves to the device once."""
        if self.shared:
            return torch.from_numpy(np.ascontiguousarray(each[0]))
        moved: dict[int, Tensor] = {}
        for own in each:
            if id(own) not in moved:
                moved[id(own)] = torch.from_numpy(np.ascontiguousarray(own)).to(self._device)
        return torch.stack([moved[id(own)] for own in each])

    def _present(self, each: Sequence[NDArray[np.bool_] | None]) -> Tensor | None:
        known = [mask.T for mask in each if mask is not None]
        if all(mask.all() for mask in known):
            return None
        whole = np.ones_like(known[0])
        return torch.from_numpy(self._joined([whole if mask is None else mask.T for mask in each]))

    def _labels(self, each: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
        """Tables may differ where labels do not."""
        return np.ascontiguousarray(each[0]) if all(own is each[0] for own in each) else np.stack(each)

    def _joined(self, each: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
        return np.ascontiguousarray(each[0]) if self.shared else np.stack(each)


def _with_common_labels(data: VerticalData) -> VerticalData:
    common = int(data.complete.sum())
    if common < LEAST_COMMON:
        raise UserError(
            f"{data.name}: {common} of {len(data.y_train)} labelled rows are at every guest, and this strategy trains"
            f" on such alone; {LEAST_COMMON} at least are needed, or dvfl, which trains on all"
        )
    return completed(data)


def _labelled_rows(data: VerticalData) -> list[NDArray[np.float32]]:
    if data.labelled is None:
        return [guest.train for guest in data.guests]
    tables = []
    for guest, where in zip(data.guests, data.labelled, strict=True):
        rows = guest.train[where]
        rows[where == ABSENT] = 0.0
        tables.append(rows)
    return tables


def _check_rows(data: VerticalData) -> None:
    """Refuses data whose rows and labels do not fit together."""
    counts = [len(guest.train) for guest in data.guests]
    if data.labelled is None:
        if set(counts) != {len(data.y_train)}:
            raise ValueError(f"tables of {counts} rows and {len(data.y_train)} labels need `labelled` to match them")
        return
    if data.labelled.shape != (len(counts), len(data.y_train)):
        raise ValueError(f"labelled has the shape {data.labelled.shape}; {(len(counts), len(data.y_train))} is right")
    if (data.labelled < ABSENT).any() or (data.labelled >= np.array(counts)[:, None]).any():
        raise ValueError("labelled names rows that a guest does not have")
    if not (data.labelled != ABSENT).any(0).all():
        raise ValueError("labelled: an entity that no guest has cannot be trained on")


def _shape(data: VerticalData) -> tuple[object, ...]:
    tables = tuple((guest.name, guest.train.shape, guest.test.shape, guest.unit, guest.image) for guest in data.guests)
    return tables, len(data.y_train), len(data.y_test), data.classes, data.sizes
