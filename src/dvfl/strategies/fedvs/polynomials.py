"""Stacked polynomial networks: linear layers with square activations, in floating point and over a field.

Livni, Shalev-Shwartz and Shamir, "On the computational efficiency of training neural networks" (2014). What such a
network gives is a polynomial of its inputs and weights, so that it can be evaluated on shares (lagrange.py).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.numerics.operations import Activation
from dvfl.strategies.fedvs.prime_field import Field


@dataclass(frozen=True)
class PolynomialNet:
    """Layers of one width, each followed by a square; one linear layer alone where there is no square."""

    in_width: int
    out_width: int
    squares: int

    @property
    def degree(self) -> int:
        """As a polynomial of inputs and weights together: a layer multiplies by weights once more, a square doubles."""
        return degree(self.squares)

    @property
    def size(self) -> int:
        """Length of one element's parameter vector."""
        return self._linear.size

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Views of vectors (.., size) under PyTorch's names, numbered as the linear layers are."""
        return self._linear.named(flat)

    def init(self, generator: torch.Generator) -> Tensor:
        """One element's parameters, drawn as `nn.Linear` draws its own."""
        return self._linear.init(generator)

    def forward(self, flat: Tensor, x: Tensor) -> list[Tensor]:
        """The input, and every layer's output before and after its square: (stack, batch, width) each."""
        tape = [x]
        for weight, bias in self._layers(flat):
            tape.append(torch.baddbmm(bias, tape[-1], weight.transpose(1, 2)))
            if self.squares:
                tape.append(tape[-1].square())
        return tape

    def backward(
        self, flat: Tensor, tape: Sequence[Tensor], dy: Tensor, gradient: Tensor, *, to_input: bool
    ) -> Tensor | None:
        """Writes the gradient of every parameter into `gradient`; returns the input's where it is asked for."""
        layers, gradients, step = self._layers(flat), self._layers(gradient), 2 if self.squares else 1
        for number in reversed(range(len(layers))):
            below = tape[step * number]
            if self.squares:
                dy = 2 * dy * tape[step * number + 1]  # what came before the square tells its sign
            into_weight, into_bias = gradients[number]
            into_bias.copy_(dy.sum(1, keepdim=True))
            into_weight.copy_(torch.bmm(dy.transpose(1, 2), below))
            if number > 0 or to_input:
                dy = torch.bmm(dy, layers[number][0])
        return dy if to_input else None

    def evaluate(self, field: Field, flat: Tensor, x: Tensor) -> Tensor:
        """The same over a field: elements (stack, batch, out_width) of parameters and inputs that are elements."""
        for weight, bias in self._layers(flat):
            x = field.add(field.matmul(x, weight.transpose(1, 2)), bias)
            if self.squares:
                x = field.multiply(x, x)
        return x

    def places(self, data: int, weights: int) -> tuple[list[int], int]:
        """Binary places of each layer's bias, which are those of what it is added to, and of the output.

        Given those of data and weights: a product has the sum of its factors' places.
        """
        biases, at = [], data
        for _ in range(self.layers):
            at += weights
            biases.append(at)
            at *= 2 if self.squares else 1
        return biases, at

    def scale(self, data: int, weights: int) -> Tensor:
        """The powers of two that parameters (size,) are multiplied with before they are rounded."""
        scale = torch.full((self.size,), 2.0**weights, dtype=torch.float64)
        tensors = self.named(scale)
        for number, places in enumerate(self.places(data, weights)[0]):
            tensors[f"{number}.bias"].fill_(2.0**places)
        return scale

    def limited(self, flat: Tensor, longest: float) -> tuple[Tensor, Tensor]:
        """Parameters whose units' vectors of weights and bias are no longer than that, and how many (stack,) were."""
        kept, count = flat.clone(), torch.zeros(len(flat), dtype=torch.int64, device=flat.device)
        for weight, bias in self._layers(kept):
            length = (weight.square().sum(2) + bias[:, 0].square()).sqrt()  # (stack, outputs)
            share = (longest / length.clamp(min=1e-30)).clamp(max=1.0)
            weight.mul_(share[..., None])
            bias.mul_(share[:, None])
            count += (length > longest).sum(1)
        return kept, count

    def largest(self, row: float, unit: float) -> float:
        """A bound on the outputs' size for rows (with a 1 for the bias) and units no longer than these.

        A unit's output is a product of two vectors, so it is at most the product of their lengths.
        """
        largest = 0.0
        for _ in range(self.layers):
            largest = row * unit
            largest = largest**2 if self.squares else largest
            row = math.hypot(1.0, largest * math.sqrt(self.out_width))
        return largest

    @property
    def layers(self) -> int:
        return max(1, self.squares)

    @cached_property
    def _linear(self) -> Mlp:
        """Knows where parameters lie."""
        identity: Activation = "identity"
        return Mlp((self.in_width, *(self.out_width,) * self.layers), (identity,) * self.layers)

    def _layers(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weight (stack, outputs, inputs) and bias (stack, 1, outputs) of each layer, as views."""
        tensors = self.named(flat)
        return [(tensors[f"{number}.weight"], tensors[f"{number}.bias"].unsqueeze(1)) for number in range(self.layers)]


def degree(squares: int) -> int:
    """Of a network with so many squares: 2, 4, 10, 22 .."""
    total = 1
    for _ in range(max(1, squares)):
        total = (total + 1) * (2 if squares else 1)
    return total
