"""The data of a stack's replicas: the same for all, or of one shape for each."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.vertical import VerticalData, intersection

GivenData = VerticalData | Sequence[VerticalData]  # for all replicas, or one for each


class ReplicaData:
    """Tables and labels as tensors: (rows, ..) where all replicas share them, (replicas, rows, ..) where not."""

    def __init__(self, given: GivenData, replicas: int) -> None:
        each = (given,) * replicas if isinstance(given, VerticalData) else tuple(given)
        if len(each) != replicas:
            raise ValueError(f"data for {len(each)} replicas; {replicas} is right")
        self.first = each[0]
        self._each = each[:1] if all(one is each[0] for one in each) else each
        if len({_shape(one) for one in self._each}) > 1:
            raise ValueError("replicas of one stack need data of one shape")
        if len(self._each) > 1 and self.first.classes is None:
            raise ValueError("replicas with data of their own need classes")  # each would have a unit of its own

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
        """Each guest's rows of the labelled entities, in the labels' order."""
        return self._tables([[guest.train for guest in intersection(one).guests] for one in self._each])

    def test(self) -> list[Tensor]:
        """Each guest's test rows."""
        return self._tables([[guest.test for guest in one.guests] for one in self._each])

    def labels(self) -> NDArray[np.generic]:
        """Of the labelled rows."""
        return self._joined([one.y_train for one in self._each])

    def test_labels(self) -> NDArray[np.generic]:
        """Of the test rows."""
        return self._joined([one.y_test for one in self._each])

    def _tables(self, each: Sequence[Sequence[NDArray[np.float32]]]) -> list[Tensor]:
        return [torch.from_numpy(self._joined(guest)) for guest in zip(*each, strict=True)]

    def _joined(self, each: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
        return np.ascontiguousarray(each[0]) if self.shared else np.stack(each)


def _shape(data: VerticalData) -> tuple[object, ...]:
    tables = tuple((guest.name, guest.train.shape, guest.test.shape, guest.unit, guest.image) for guest in data.guests)
    return tables, len(data.y_train), len(data.y_test), data.classes, data.sizes
