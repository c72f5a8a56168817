"""Exact arithmetic modulo a Mersenne prime on stacks of integer tensors, on any device.

A field element is an integer from 0 to p - 1 in an int64 tensor (int32 where it is only stored). Nothing here rounds
and nothing overflows; the comments say why.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

_EXPONENTS = (2, 3, 5, 7, 13, 17, 19, 31, 61)  # of the Mersenne primes that fit into 63 bits
_EXACT = 53  # bits: integers up to 2^53 are exact in float64, and so are their sums as long as these stay below it
_HALF = 31  # bits of the lower part in products that int64 does not hold
_GOLDEN, _FIRST, _SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685  # of SplitMix64


@dataclass(frozen=True)
class Field:
    """The integers modulo p = 2^exponent - 1."""

    exponent: int

    def __post_init__(self) -> None:
        if self.exponent not in _EXPONENTS:
            raise ValueError(f"2^{self.exponent} - 1 is not a prime below 2^63; exponents: {_EXPONENTS}")

    @property
    def prime(self) -> int:
        return (1 << self.exponent) - 1

    @property
    def storage(self) -> torch.dtype:
        """The smallest type that holds every element."""
        return torch.int32 if self.exponent <= 31 else torch.int64

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """The sum, element by element: below 2^62 before it is reduced."""
        return (a + b).remainder_(self.prime)

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """The product, element by element."""
        if 2 * self.exponent <= 62:
            return (a * b).remainder_(self.prime)
        # Parts of 30 and 31 bits, as in a = a1 2^31 + a0. All sums below stay under 2^63:
        # a0 b0 < 2^62, a1 b0 + a0 b1 < 2^62, a1 b1 < 2^60; 2^61 is 1, so 2^62 is 2.
        low = (1 << _HALF) - 1
        a0, a1, b0, b1 = a & low, a >> _HALF, b & low, b >> _HALF
        middle = a1 * b0 + a0 * b1
        up = self.exponent - _HALF  # middle 2^31 = (m1 2^30 + m0) 2^31 = m1 + m0 2^31, at most 2^32 + 2^61
        shifted = (middle >> up) + ((middle & ((1 << up) - 1)) << _HALF)
        lowest = a0 * b0
        lowest = (lowest & self.prime) + (lowest >> self.exponent)  # at most 2^61 + 1
        return (lowest + shifted + 2 * (a1 * b1)).remainder_(self.prime)  # of less than 3 x 2^61 + 2^33

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Matrix products of (stack, m, n) and (stack, n, k), exact on CPU and GPU alike.

        Elements are cut into limbs of so few bits that n products of two limbs add up to less than 2^53; one batched
        product in float64 then makes all pairs of limbs at once, and none of its sums is ever rounded.
        """
        m, n, k = a.shape[1], a.shape[2], b.shape[2]
        bits = (_EXACT - (n - 1).bit_length()) // 2  # n (2^bits - 1)^2 < 2^53
        count = -(-self.exponent // bits)
        left = _limbs(a, bits, count)  # (stack, limbs x m, n)
        right = _limbs(b.transpose(1, 2), bits, count).transpose(1, 2)  # (stack, n, limbs x k)
        pairs = torch.bmm(left, right).to(torch.int64).view(-1, count, m, count, k)
        product = pairs[:, -1, :, -1] % self.prime
        for place in reversed(range(2 * count - 2)):  # Horner's rule: a place is worth 2^bits times the one below it
            product = self._shifted(product, bits)
            for i in range(max(0, place - count + 1), min(place, count - 1) + 1):
                product += pairs[:, i, :, place - i]
            product.remainder_(self.prime)  # of less than 2^61 + count x 2^53
        return product

    def centred(self, x: Tensor) -> Tensor:
        """The integers of least size that elements stand for: above (p - 1) / 2 they are negative."""
        return torch.where(x > self.prime // 2, x - self.prime, x)

    def wrapped(self, x: Tensor) -> Tensor:
        """The elements of integers between -(p - 1) / 2 and (p - 1) / 2."""
        return torch.where(x < 0, x + self.prime, x)

    def uniform(self, keys: Tensor, count: int) -> Tensor:
        """`count` pseudo-random elements of each key (..,): (.., count).

        SplitMix64, a hash of key and place: no state to keep, the same numbers on every device, and fit for a CUDA
        graph. It serves a simulation; parties that have something to hide take their system's source. 0 comes up twice
        as often as the others: a bias of 2^-31 or less in the fields that are used.
        """
        place = torch.arange(1, count + 1, device=keys.device) * _GOLDEN
        drawn = mixed(mixed(keys)[..., None] + place) & self.prime
        return torch.where(drawn == self.prime, 0, drawn)

    def _shifted(self, x: Tensor, bits: int) -> Tensor:
        """Elements times 2^bits: a rotation of their binary digits."""
        bits %= self.exponent
        up = self.exponent - bits
        return ((x & ((1 << up) - 1)) << bits) | (x >> up)


def mixed(x: Tensor) -> Tensor:
    """A hash of 64 bits (the last steps of SplitMix64); products wrap around."""
    x = (x ^ _shifted_right(x, 30)) * _FIRST
    x = (x ^ _shifted_right(x, 27)) * _SECOND
    return x ^ _shifted_right(x, 31)


def _shifted_right(x: Tensor, bits: int) -> Tensor:
    """Zeros come in at the left, whatever the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _limbs(x: Tensor, bits: int, count: int) -> Tensor:
    """The limbs of elements (stack, rows, columns), lowest first: (stack, limbs x rows, columns) in float64."""
    limbs = torch.empty(len(x), count, *x.shape[1:], dtype=torch.float64, device=x.device)
    for number in range(count):
        left = x >> (bits * number) if number else x
        limbs[:, number] = left & ((1 << bits) - 1) if number < count - 1 else left
    return limbs.flatten(1, 2)
