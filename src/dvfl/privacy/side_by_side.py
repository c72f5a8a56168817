"""Guessing a guest's columns from its encodings with something else beside them, which may say little."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from dvfl.privacy.alike import Alike, by_network, explained
from dvfl.privacy.readers import Effort, best_ridge
from dvfl.privacy.recording import Recording, at

_WEIGHTS = (0.1, 0.3, 1.0)  # of what stands beside encodings


def ridge_with(seen: Recording, beside: Sequence[Tensor], known: Tensor) -> tuple[float, ...]:
    """R2 of ridge from both, `beside` (replicas, rows, width) for each guest; known rows say how much weight it
    deserves, none included."""
    shares = []
    for guest, more in zip(seen.guests, beside, strict=True):
        pairs = [torch.cat([_evened(guest.z), weight * _evened(more)], 2) for weight in _WEIGHTS]

        def guess(group: Alike, known: Tensor, pairs: list[Tensor] = pairs) -> Tensor:
            rows = group.rows.victim
            views = [(group.known(known)[0], group.victims), *((at(pair, known), pair[:, rows]) for pair in pairs)]
            return best_ridge(views, group.known(known)[1], scaled=False)

        alone = replace(guest, z=_evened(guest.z), gradients=None)
        shares.append(explained(replace(seen, guests=(alone,)), known, guess))
    return tuple(sum(each) / len(each) for each in zip(*shares, strict=True))


def network_with(seen: Recording, beside: Sequence[Tensor], known: Tensor, effort: Effort) -> tuple[float, ...]:
    """R2 of a network that sees both."""
    pairs = zip(seen.guests, beside, strict=True)
    both = seen.with_encodings(torch.cat([_evened(guest.z), _evened(more)], 2) for guest, more in pairs)
    return explained(both, known, by_network(effort))


def _evened(values: Tensor) -> Tensor:
    """Columns (replicas, rows, width) scaled to one spread over all rows, which attackers hold; silent ones stay so."""
    spread = values.std(1, keepdim=True, correction=0)
    return values / spread.maximum(spread.mean(2, keepdim=True) * 0.3).clamp(min=1e-6)
