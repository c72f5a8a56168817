"""Labels that spread from the few rows whose label is known to all others, from neighbour to neighbour.

Zhou et al., "Learning with local and global consistency" (2003): a graph of near rows, on which known labels diffuse.
An attacker holds far more rows than labels, and rows of a class lie together. Fu et al. (2022) use rows without labels
too, by MixMatch.
"""

import torch
from torch import Tensor

from dvfl.audit.readers.priors import principal

_DIRECTIONS = 32  # leading principal ones in which rows are compared
_POWER = 0.25  # of their variances that is divided by: half whitened
_NEAREST = 10  # neighbours of a row
_STAYS, _ROUNDS = 0.99, 60  # of the diffusion
_AT_ONCE = 1 << 25  # distances that are held at a time


class Neighbours:
    """Which rows of (stack, rows, width) lie near each other, and how near."""

    def __init__(self, z: Tensor) -> None:
        self._rows = z.shape[1]
        self._graphs = [_graph(one) for one in _leading(z)]

    @torch.no_grad()
    def spread(self, known: Tensor, y: Tensor, classes: int) -> Tensor:
        """How much each class has for it in every row, from rows `known` (stack, some) and their classes.

        All classes together have the same weight: (stack, rows, classes).
        """
        device = known.device
        made = []
        for (ends, weights), rows, own in zip(self._graphs, known, y, strict=True):
            start = torch.zeros(self._rows, classes, device=device)
            start.index_put_((rows, own), torch.ones(len(rows), device=device), accumulate=True)
            start /= start.sum(0).clamp(min=1)
            mass = start
            for _ in range(_ROUNDS):
                moved = torch.zeros_like(start).index_add_(0, ends[0], mass.index_select(0, ends[1]) * weights[:, None])
                mass = _STAYS * moved + (1 - _STAYS) * start
            made.append(mass / mass.sum(0).clamp(min=1e-30))
        return torch.stack(made)


def _leading(z: Tensor) -> Tensor:
    """Rows along the leading principal directions, half whitened: (stack, rows, directions)."""
    centre, variances, directions = principal(z.double())
    kept = min(_DIRECTIONS, z.shape[2])
    scale = variances[..., :kept].clamp(min=1e-12) ** _POWER
    turned: Tensor = (z.double() - centre) @ directions[..., :kept] / scale
    return turned.float()


def _graph(z: Tensor) -> tuple[Tensor, Tensor]:
    """Both ends of every edge among rows (rows, width), each there and back, and its weight: (2, edges), (edges,).

    Distances count in units of how far a row's neighbours are, and weights are evened out by how many edges rows have.
    """
    rows = len(z)
    count = min(_NEAREST, rows - 1)
    nearest, distances = [], []
    for first in range(0, rows, max(1, _AT_ONCE // rows)):
        own = z[first : first + max(1, _AT_ONCE // rows)]
        apart = torch.cdist(own, z)
        apart[torch.arange(len(own)), torch.arange(first, first + len(own))] = torch.inf  # not a neighbour of itself
        found = apart.topk(count, largest=False)
        nearest.append(found.indices)
        distances.append(found.values)
    near, far = torch.cat(nearest), torch.cat(distances)
    reach = far[:, -1]
    weights = torch.exp(-far.square() / (reach[:, None] * reach[near]).clamp(min=1e-12)).flatten()
    here, there = torch.arange(rows, device=z.device).repeat_interleave(count), near.flatten()
    ends, weights = torch.stack([torch.cat([here, there]), torch.cat([there, here])]), weights.repeat(2) / 2
    degree = torch.zeros(rows, device=z.device).index_add_(0, ends[0], weights).clamp(min=1e-12)
    return ends, weights / (degree[ends[0]] * degree[ends[1]]).sqrt()
