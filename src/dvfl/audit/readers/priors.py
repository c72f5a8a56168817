"""What an attacker makes of public rows of the same kind, whose encodings it does not have.

`posterior` takes encodings for linear in the columns, with noise, and the columns for Gaussian with the public rows'
mean and covariance. The map to encodings is learned from known pairs; what it leaves open the covariance fills in. So a
few pairs go further than in a map from encodings to columns, which has to learn the covariance from them too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_DIRECTIONS = 256  # of the public rows' principal ones that are kept
_FOLDS = 5
_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # of the map to encodings, times the columns' mean variance
_NOISES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)  # variance of what the map does not explain, times the encodings' mean variance


@dataclass(frozen=True)
class Prior:
    """The public rows' mean, range and leading principal directions, of each element of a stack."""

    mean: Tensor  # (stack, 1, columns)
    least: Tensor  # (stack, 1, columns)
    most: Tensor
    variances: Tensor  # (stack, 1, directions)
    directions: Tensor  # (stack, columns, directions)

    @classmethod
    def of(cls, x: Tensor) -> "Prior":
        """From rows (stack, rows, columns)."""
        x = x.double()
        mean, values, vectors = principal(x)
        kept = min(_DIRECTIONS, x.shape[2])
        return cls(mean, x.amin(1, keepdim=True), x.amax(1, keepdim=True), values[..., :kept], vectors[..., :kept])

    def repeated(self, each: Callable[[Tensor], Tensor]) -> "Prior":
        """One for every element of a larger stack."""
        return Prior(each(self.mean), each(self.least), each(self.most), each(self.variances), each(self.directions))

    def coordinates(self, x: Tensor) -> Tensor:
        """Rows along the directions."""
        coordinates: Tensor = (x.double() - self.mean) @ self.directions
        return coordinates

    def columns(self, coordinates: Tensor) -> Tensor:
        """The opposite, within what public rows have."""
        made = coordinates @ self.directions.mT + self.mean
        return made.maximum(self.least).minimum(self.most).float()


def principal(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean (stack, 1, columns), and variances (stack, 1, columns) along principal directions, the largest first."""
    mean = x.mean(1, keepdim=True)
    values, vectors = torch.linalg.eigh((x - mean).mT @ (x - mean) / x.shape[1])
    return mean, values.flip(1).clamp(min=0)[:, None], vectors.flip(2)


def posterior(prior: Prior, z: Tensor, x: Tensor, others: Tensor, every: Tensor) -> Tensor:
    """Guesses at the columns behind encodings `others`, from known pairs `z` and `x` and from `every` encoding held.

    Penalty and noise are those that do best on known pairs that were left out, for each element.
    """
    centre = every.double().mean(1, keepdim=True)
    spread = (every.double() - centre).square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-12)
    z, others, c = (z.double() - centre) / spread, (others.double() - centre) / spread, prior.coordinates(x)
    folds = min(_FOLDS, z.shape[1])
    penalties, noises = (torch.tensor(grid, dtype=torch.float64, device=z.device) for grid in (_PENALTIES, _NOISES))
    errors = torch.zeros(len(z), len(penalties), len(noises), dtype=torch.float64, device=z.device)
    fold = torch.arange(z.shape[1], device=z.device) % folds
    for number in range(folds if folds > 1 else 0):
        kept, out = fold != number, fold == number
        forward = _forward(prior, c[:, kept], z[:, kept])
        for i, penalty in enumerate(penalties):
            inverse = _inverse(prior, forward(penalty))
            for j, noise in enumerate(noises):
                errors[:, i, j] += (inverse(z[:, out], noise) - c[:, out]).square().sum((1, 2))
    best = errors.flatten(1).argmin(1)
    penalty, noise = (
        grid[place][:, None, None] for grid, place in ((penalties, best // len(noises)), (noises, best % len(noises)))
    )
    return prior.columns(_inverse(prior, _forward(prior, c, z)(penalty))(others, noise))


def _forward(prior: Prior, c: Tensor, z: Tensor) -> Callable[[Tensor], Tensor]:
    """Ridge from coordinates to encodings, by its penalty: (stack, directions, seen)."""
    unit = torch.eye(c.shape[2], dtype=c.dtype, device=c.device)
    scale = c.shape[1] * prior.variances.mean(2, keepdim=True).clamp(min=1e-12)
    squares, products = c.mT @ c, c.mT @ z
    return lambda penalty: _solved(squares + penalty * scale * unit, products)


def _inverse(prior: Prior, forward: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """The posterior mean of rows' coordinates, from their encodings (stack, rows, seen) and the noise in these."""
    unit = torch.eye(forward.shape[2], dtype=forward.dtype, device=forward.device)
    weighted = forward.mT * prior.variances  # (stack, seen, directions)
    squares = weighted @ forward
    return lambda z, noise: _solved(squares + noise * unit, z.mT).mT @ weighted


def _solved(positive: Tensor, right: Tensor) -> Tensor:
    """`torch.linalg.solve` for positive definite matrices. With two threads of a CPU and 160 rows or more that fails in
    PyTorch 2.13 (MKL's LU factors of a stack are no longer valid); Cholesky's are, and take half the work."""
    solved: Tensor = torch.cholesky_solve(right, torch.linalg.cholesky(positive))
    return solved
