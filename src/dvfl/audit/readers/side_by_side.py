"""Guessing a guest's columns from its encodings with something else beside them, which may say little."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dvfl.audit.readers.alike import Alike, by_network, explained
from dvfl.audit.readers.readers import Effort, best_ridge, deviation
from dvfl.audit.recordings.recording import Recording

_View = tuple[Tensor, Tensor]  # of known rows, and of those that are guessed
_WEIGHTS = (0.1, 0.3, 1.0)  # of what stands beside encodings


def ridge_with(seen: Recording, beside: Sequence[Tensor], known: Tensor) -> tuple[float, ...]:
    """R2 of ridge from both, `beside` (replicas, rows, width) for each guest; known rows say how much weight it
    deserves, none included."""
    evened = [_evened(more) for more in beside]

    def guess(group: Alike, known: Tensor) -> Tensor:
        z, x = group.known(known)
        more = group.stacked(evened)
        own, rest = (z, group.victims), (group.at(more, known), more[:, group.rows.victim])
        views = (_joined(own, rest, weight) for weight in _WEIGHTS)
        return best_ridge([own, *views], x, scaled=False)

    return explained(seen.with_encodings(_evened(guest.z) for guest in seen.guests), known, guess)


def network_with(seen: Recording, beside: Sequence[Tensor], known: Tensor, effort: Effort) -> tuple[float, ...]:
    """R2 of a network that sees both."""
    pairs = zip(seen.guests, beside, strict=True)
    both = seen.with_encodings(torch.cat([_evened(guest.z), _evened(more)], 2) for guest, more in pairs)
    return explained(both, known, by_network(effort))


def _joined(own: _View, rest: _View, weight: float) -> _View:
    """Two views of the same rows side by side."""
    return torch.cat([own[0], weight * rest[0]], 2), torch.cat([own[1], weight * rest[1]], 2)


def _evened(values: Tensor) -> Tensor:
    """Columns (replicas, rows, width) scaled to one spread over all rows, which attackers hold; silent ones stay so."""
    spread = deviation(values)
    return values / spread.maximum(spread.mean(2, keepdim=True) * 0.3).clamp(min=1e-6)
