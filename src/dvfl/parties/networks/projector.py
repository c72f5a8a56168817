"""The projector of a contrastive objective: linear layers with batch normalisation between them, stacked like `Mlp`.

It serves in training alone and its batches are whole there, so it keeps no running statistics.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from dvfl.parties.networks.mlp import aligned
from dvfl.parties.numerics.operations import before_activation, layer

_LEAST_VARIANCE = 1e-5  # added to a variance, as nn.BatchNorm1d adds it


@dataclass(frozen=True)
class Projector:
    """Linear layers of `widths[0] -> widths[1] -> ..`, all but the last followed by batch normalisation and ReLU.

    Layers that are normalised have no bias: the normalisation would take it away again.
    """

    widths: tuple[int, ...]

    @property
    def in_width(self) -> int:
        return self.widths[0]

    @property
    def out_width(self) -> int:
        return self.widths[-1]

    @cached_property
    def _layout(self) -> tuple[tuple[tuple[int, ...], ...], int]:
        """Offsets of each layer's tensors (weight, then gain and shift or bias), and the length of the whole row."""
        layers, end = [], 0
        for number, (inputs, outputs) in enumerate(zip(self.widths, self.widths[1:], strict=False)):
            offsets = []
            for length in (inputs * outputs, *((outputs,) * (1 if number == len(self.widths) - 2 else 2))):
                offsets.append(end)
                end = aligned(end + length)
            layers.append(tuple(offsets))
        return tuple(layers), end

    @property
    def size(self) -> int:
        """Length of one element's parameter vector."""
        return self._layout[1]

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Views of vectors (.., size) under PyTorch's names, numbered as the linear layers are."""
        tensors = {}
        for number, (weight, *others) in enumerate(self._layout[0]):
            inputs, outputs = self.widths[number : number + 2]
            tensors[f"{number}.weight"] = flat[..., weight : weight + inputs * outputs].unflatten(-1, (outputs, inputs))
            names = ("norm.weight", "norm.bias") if len(others) == 2 else ("bias",)
            for name, start in zip(names, others, strict=True):
                tensors[f"{number}.{name}"] = flat[..., start : start + outputs]
        return tensors

    def init(self, generator: torch.Generator) -> Tensor:
        """One element's parameters, drawn as `nn.Linear` and `nn.BatchNorm1d` draw their own."""
        flat = torch.zeros(self.size)
        tensors = self.named(flat)
        for name, tensor in tensors.items():
            bound = 1 / math.sqrt(self.widths[int(name.split(".")[0])])
            if name.endswith("norm.weight"):
                tensor.fill_(1.0)
            elif not name.endswith("norm.bias"):
                tensor.uniform_(-bound, bound, generator=generator)
        return flat

    def forward(self, flat: Tensor, x: Tensor) -> list[Tensor]:
        """The input; each hidden layer's normalised values, their scale (stack, 1, width) and output; the output."""
        tape = [x]
        *hidden, (weight, bias) = self._views(flat)
        for into, gain, shift in hidden:
            normal = torch.bmm(tape[-1], into.transpose(1, 2))
            normal.sub_(normal.mean(1, keepdim=True))
            scale = normal.square().mean(1, keepdim=True).add_(_LEAST_VARIANCE).rsqrt_()
            normal.mul_(scale)
            tape += [normal, scale, torch.addcmul(shift, normal, gain).relu_()]
        tape.append(layer(tape[-1], weight, bias, "identity"))
        return tape

    def backward(
        self, flat: Tensor, tape: Sequence[Tensor], dy: Tensor, gradient: Tensor, *, to_input: bool
    ) -> Tensor | None:
        """Writes the gradient of every parameter into `gradient`; returns the input's where it is asked for.

        `dy` is used up, as by an Mlp.
        """
        parameters, gradients = self._views(flat), self._views(gradient)
        (weight, _), (into_weight, into_bias) = parameters[-1], gradients[-1]
        dy = before_activation(dy, tape[-1], "identity", into_bias)
        torch.bmm(dy.transpose(1, 2), tape[-2], out=into_weight)
        hidden = len(parameters) - 1
        if hidden or to_input:
            dy = torch.bmm(dy, weight)
        for number in reversed(range(hidden)):
            weight, gain, _ = parameters[number]
            into_weight, into_gain, into_shift = gradients[number]
            x, normal, scale, y = tape[3 * number : 3 * number + 4]
            dy = before_activation(dy, y, "relu", into_shift)
            torch.sum(dy * normal, dim=1, keepdim=True, out=into_gain)
            share = 1 / dy.shape[1]  # of a row in the mean and in the variance
            dy.sub_(into_shift * share).addcmul_(normal, into_gain, value=-share).mul_(gain * scale)
            torch.bmm(dy.transpose(1, 2), x, out=into_weight)
            if number > 0 or to_input:
                dy = torch.bmm(dy, weight)
        return dy if to_input else None

    def _views(self, flat: Tensor) -> list[tuple[Tensor, ...]]:
        """Of each layer: weight (stack, outputs, inputs), then gain and shift, or bias, (stack, 1, outputs) each."""
        stack, stride, start = flat.shape[0], flat.stride(0), flat.storage_offset()
        views = []
        for number, (weight, *others) in enumerate(self._layout[0]):
            inputs, outputs = self.widths[number : number + 2]
            tensors = [flat.as_strided((stack, outputs, inputs), (stride, inputs, 1), start + weight)]
            tensors += [flat.as_strided((stack, 1, outputs), (stride, outputs, 1), start + other) for other in others]
            views.append(tuple(tensors))
        return views
