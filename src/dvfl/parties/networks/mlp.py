"""Stacked multi-layer perceptrons: one flat parameter vector per stack element and a backward pass written out.

Everything here works on a stack: `flat` is (stack, size), inputs are (stack, batch, width). A real party is a stack
of one; the simulator stacks replicas x parties of equal shape and pays the cost of a Python call once for all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from dvfl.parties.numerics.operations import Activation, before_activation, layer

_VIEWS_KEPT = 64  # parameters and gradients of the slices of a stack
ALIGNMENT = 16  # every tensor starts on a 64-byte boundary of its row


@dataclass(frozen=True)
class Mlp:
    """Layers of `widths[0] -> widths[1] -> ..`, each followed by its activation."""

    widths: tuple[int, ...]
    activations: tuple[Activation, ...]  # one a layer

    def __post_init__(self) -> None:
        if len(self.activations) != len(self.widths) - 1 or min(self.widths) < 1:
            raise ValueError(f"an Mlp of widths {self.widths} needs one activation a layer and widths of at least 1")

    @property
    def in_width(self) -> int:
        return self.widths[0]

    @property
    def out_width(self) -> int:
        return self.widths[-1]

    @cached_property
    def _layout(self) -> tuple[tuple[tuple[int, int, int, int], ...], int]:
        """(weight's offset, bias's offset, inputs, outputs) of each layer, and the length of the whole row."""
        layers, end = [], 0
        for inputs, outputs in zip(self.widths, self.widths[1:], strict=False):
            weight = end
            bias = aligned(weight + inputs * outputs)
            end = aligned(bias + outputs)
            layers.append((weight, bias, inputs, outputs))
        return tuple(layers), end

    @property
    def size(self) -> int:
        """Length of one element's parameter vector."""
        return self._layout[1]

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Views of vectors (.., size) under PyTorch's names, numbered as the linear layers are."""
        tensors = {}
        for number, (weight, bias, inputs, outputs) in enumerate(self._layout[0]):
            tensors[f"{number}.weight"] = flat[..., weight : weight + inputs * outputs].unflatten(-1, (outputs, inputs))
            tensors[f"{number}.bias"] = flat[..., bias : bias + outputs]
        return tensors

    def init(self, generator: torch.Generator) -> Tensor:
        """One element's parameters, drawn as `nn.Linear` draws its own: uniform in +-1/sqrt(inputs)."""
        flat = torch.zeros(self.size)
        for weight, bias, inputs, outputs in self._layout[0]:
            for start, length in ((weight, inputs * outputs), (bias, outputs)):
                bound = 1 / math.sqrt(inputs)
                flat[start : start + length].uniform_(-bound, bound, generator=generator)
        return flat

    def forward(self, flat: Tensor, x: Tensor) -> list[Tensor]:
        """The input and every layer's output: (stack, batch, width) each."""
        tape = [x]
        for (weight, bias), name in zip(self._views(flat), self.activations, strict=True):
            tape.append(layer(tape[-1], weight, bias, name))
        return tape

    def backward(
        self, flat: Tensor, tape: Sequence[Tensor], dy: Tensor, gradient: Tensor, *, to_input: bool
    ) -> Tensor | None:
        """Writes the gradient of every parameter into `gradient`; returns the input's where it is asked for.

        `dy` is used up: its memory serves for what comes before the last activation.
        """
        parameters, gradients = self._views(flat), self._views(gradient)
        for number in reversed(range(len(self.activations))):
            weight, (into_weight, into_bias) = parameters[number][0], gradients[number]
            dy = before_activation(dy, tape[number + 1], self.activations[number], into_bias)
            torch.bmm(dy.transpose(1, 2), tape[number], out=into_weight)
            if number > 0 or to_input:
                dy = torch.bmm(dy, weight)
        return dy if to_input else None

    @cached_property
    def _known_views(self) -> dict[tuple[int, int, int], list[tuple[Tensor, Tensor]]]:
        return {}

    def _views(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weight (stack, outputs, inputs) and bias (stack, 1, outputs) of each layer.

        Kept, as making them costs as much as a small product. What is kept holds its memory, so no other vector can
        come to lie at the same address meanwhile.
        """
        stack, stride = flat.shape[0], flat.stride(0)
        key = flat.data_ptr(), stack, stride
        if key in self._known_views:
            return self._known_views[key]
        if len(self._known_views) >= _VIEWS_KEPT:
            self._known_views.clear()
        start = flat.storage_offset()
        views = self._known_views[key] = [
            (
                flat.as_strided((stack, outputs, inputs), (stride, inputs, 1), start + weight),
                flat.as_strided((stack, 1, outputs), (stride, outputs, 1), start + bias),
            )
            for weight, bias, inputs, outputs in self._layout[0]
        ]
        return views


def aligned(offset: int) -> int:
    """The next place from `offset` on where a tensor may start."""
    return -(-offset // ALIGNMENT) * ALIGNMENT
