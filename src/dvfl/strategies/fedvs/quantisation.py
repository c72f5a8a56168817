"""Numbers as field elements: fixed point with a chosen number of binary places, rounded to the nearest."""

import torch
from torch import Tensor

from dvfl.strategies.fedvs.prime_field import Field


def quantise(x: Tensor, scale: float | Tensor, field: Field) -> Tensor:
    """The elements nearest to x times `scale`, a power of two or a tensor of them that broadcasts to x.

    The caller sees to it that the product lies between -(p - 1) / 2 and (p - 1) / 2. In float64, so that what float32
    holds is scaled without loss.
    """
    return field.wrapped((x.to(torch.float64) * scale).round_().to(torch.int64))


def dequantise(elements: Tensor, scale: float, field: Field) -> Tensor:
    """The numbers that elements with that scale stand for, as float64."""
    return field.centred(elements).to(torch.float64) / scale
