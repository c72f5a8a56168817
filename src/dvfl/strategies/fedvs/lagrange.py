"""Lagrange coding over a field: secrets and random masks as values of one polynomial, shares as other values of it.

Yu et al., "Lagrange coded computing" (2019). K secrets and T masks are the values of a polynomial u of degree K + T - 1
at the points beta_1 .. beta_{K+T}; client n holds u(alpha_n). Whatever the secrets are, any T shares can take all
values, each for exactly one choice of the masks: T colluding clients learn nothing. A polynomial f of degree D that
every client applies to its share gives values of f(u), whose degree is D (K + T - 1); from one more of them than that,
f of every secret is read off at beta_1 .. beta_K.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from torch import Tensor

from dvfl.strategies.fedvs.prime_field import Field


class TooFewResults(ValueError):
    """Fewer results than determine the polynomial."""


@dataclass(frozen=True)
class Code:
    """Who holds which value of the polynomial."""

    field: Field
    clients: int  # N
    secrets: int  # K
    masks: int  # T
    device: torch.device | str = "cpu"  # of what is encoded and decoded

    def __post_init__(self) -> None:
        if min(self.clients, self.secrets) < 1 or self.masks < 0:
            raise ValueError(f"{self}: at least one client and one secret are right")
        if len(self._all) >= self.field.prime:
            raise ValueError(f"{self}: a field of {self.field.prime} has too few points for all; a larger one is right")

    def threshold(self, degree: int) -> int:
        """How many results of a polynomial of that degree give it away."""
        return threshold(self.secrets, self.masks, degree)

    @cached_property
    def encoding(self) -> Tensor:
        """What every secret and mask adds to every client's share: (clients, secrets + masks)."""
        rows = [_basis(self._all[: self.secrets + self.masks], alpha, self.field.prime) for alpha in self._alphas]
        return torch.tensor(rows, device=self.device)

    def encode(self, secrets: Tensor, masks: Tensor, axis: int = 0) -> Tensor:
        """Shares of secrets (secrets, ..) and masks (masks, ..), with the clients' axis in that place."""
        return self._combined(self.encoding, [*secrets, *masks], axis)

    def encode_same(self, secret: Tensor, masks: Tensor, axis: int = 0) -> Tensor:
        """The same for one secret (..) that stands in all places of secrets."""
        return self._combined(self._encoding_same, [secret, *masks], axis)

    def decoding(self, heard: Sequence[int], degree: int) -> Tensor:
        """What every client's result adds to every secret's: (secrets, clients), zeros where it is not used.

        `heard` are the numbers of the clients whose results arrived, from 0; the first that suffice are used.
        """
        needed = self.threshold(degree)
        if len(heard) < needed:
            raise TooFewResults(f"{len(heard)} of {self.clients} results arrived; {needed} are needed to decode")
        used = sorted(heard)[:needed]
        points = [self._alphas[client] for client in used]
        coefficients = torch.zeros(self.secrets, self.clients, dtype=torch.int64)  # made ahead of rounds, on the CPU
        for secret, beta in enumerate(self._all[: self.secrets]):
            coefficients[secret, used] = torch.tensor(_basis(points, beta, self.field.prime))
        return coefficients

    @property
    def _all(self) -> range:
        """All points: the secrets' (beta), the masks' (beta), the clients' (alpha). No two are the same."""
        return range(1, 1 + self.secrets + self.masks + self.clients)

    @property
    def _alphas(self) -> range:
        return self._all[self.secrets + self.masks :]

    @cached_property
    def _encoding_same(self) -> Tensor:
        """The columns of all secrets as one."""
        whole = [[sum(row) % self.field.prime] for row in self.encoding[:, : self.secrets].tolist()]
        return torch.cat([torch.tensor(whole, device=self.device), self.encoding[:, self.secrets :]], 1)

    def _combined(self, coefficients: Tensor, values: Sequence[Tensor], axis: int) -> Tensor:
        """Linear combinations of values, as many as there are rows of coefficients."""
        field, shape = self.field, [1] * (values[0].dim() + 1)
        shape[axis] = len(coefficients)
        terms = [
            field.multiply(coefficients[:, column].view(shape), value.unsqueeze(axis))
            for column, value in enumerate(values)
        ]
        return reduce(field.add, terms)


def threshold(secrets: int, masks: int, degree: int) -> int:
    """One result more than the degree of a polynomial of that degree over shares."""
    return degree * (secrets + masks - 1) + 1


def _basis(points: Sequence[int], at: int, prime: int) -> list[int]:
    """The Lagrange polynomials of some points, each 1 at its own point and 0 at the others, at another point."""
    values = []
    for own in points:
        above, below = 1, 1
        for other in points:
            if other != own:
                above, below = above * (at - other) % prime, below * (own - other) % prime
        values.append(above * pow(below, -1, prime) % prime)
    return values
