"""Encoders that users bring for their guests: networks are trained with everybody's, other models fitted beforehand."""

import copy
from collections.abc import Sequence

from torch import nn

from dvfl.parties.guest import FitTransform
from dvfl.simulation.replica_data import ReplicaData
from dvfl.simulation.stack import Encoder


def fitted(encoders: Sequence[Encoder | None] | None, tables: ReplicaData) -> list[Encoder | None] | None:
    """Copies of them, one a guest; those that are no networks fitted to their guest's training rows."""
    if encoders is None:
        return None
    if len(encoders) != len(tables.first.guests):
        return list(encoders)  # refused by Stack
    return [
        copy.deepcopy(given) if given is None or isinstance(given, nn.Module) else _models(given, guest, tables)
        for guest, given in enumerate(encoders)
    ]


def _models(
    given: FitTransform | tuple[FitTransform, ...], guest: int, tables: ReplicaData
) -> tuple[FitTransform, ...]:
    """One guest's: one for all replicas that share its rows, or one each."""
    own = [data.guests[guest].train for data in tables.distinct()]
    models = given if isinstance(given, tuple) else (given,) * len(own)
    copies = tuple(copy.deepcopy(model) for model in models)
    for model, rows in zip(copies, own if len(own) > 1 else own * len(copies), strict=True):
        model.fit(rows)
    return copies
