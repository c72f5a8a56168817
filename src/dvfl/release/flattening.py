"""Encodings whose directions are all equally strong, so that noise of one size hides each as well as the others.

What varies most in a guest's columns varies most in its encodings, and noise leaves it standing longest. After a
symmetric whitening every direction has the same variance. It needs no labels, and a guest can do it alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

_LEAST = 1e-6  # of the largest variance: directions that are as good as silent are not blown up beyond that


@dataclass(frozen=True)
class Flattening:
    """A map (.., latent) to (.., latent), for each element of a stack."""

    centre: Tensor  # (.., 1, latent)
    weights: Tensor  # (.., latent, latent)

    @classmethod
    def identity(cls, *shape: int, device: torch.device) -> "Flattening":
        """Changes nothing; `shape` ends in the latent width."""
        unit = torch.eye(shape[-1], device=device).expand(*shape[:-1], -1, -1)
        return cls(torch.zeros(*shape[:-1], 1, shape[-1], device=device), unit.clone())

    @classmethod
    def of(cls, z: Tensor) -> "Flattening":
        """For encodings like `z` (.., rows, latent); an encoding has a mean square of 1 after it."""
        z = z.double()
        centre = z.mean(-2, keepdim=True)
        covariance = (z - centre).mT @ (z - centre) / z.shape[-2]
        variances, directions = torch.linalg.eigh(covariance)
        floor = (variances.amax(-1, keepdim=True) * _LEAST).clamp(min=1e-12)
        kept = variances.clamp(min=0) / variances.maximum(floor)  # what is left of each after the map
        scale = variances.maximum(floor) * kept.mean(-1, keepdim=True).clamp(min=1e-6)
        weights = directions * scale.rsqrt().unsqueeze(-2) @ directions.mT
        return cls(centre.float(), weights.float())

    def become(self, other: "Flattening") -> None:
        """Takes another's values."""
        self.centre.copy_(other.centre)
        self.weights.copy_(other.weights)

    def __call__(self, z: Tensor) -> Tensor:
        """Encodings (.., rows, latent), flat."""
        flat: Tensor = (z - self.centre) @ self.weights
        return flat
