"""Any `vmap`-able `nn.Module` as a stacked network, behind the interface that `Mlp` has."""

import copy
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn


class Net(Protocol):
    """A network whose parameters are one flat vector per stack element."""

    @property
    def in_width(self) -> int: ...
    @property
    def out_width(self) -> int: ...
    @property
    def size(self) -> int: ...
    def init(self, generator: torch.Generator) -> Tensor: ...
    def named(self, flat: Tensor) -> dict[str, Tensor]: ...
    def forward(self, flat: Tensor, x: Tensor) -> list[Tensor]: ...
    def backward(
        self, flat: Tensor, tape: Sequence[Tensor], dy: Tensor, gradient: Tensor, *, to_input: bool
    ) -> Tensor | None: ...


class ModuleNet:
    """Wraps a module that maps (batch, in_width) to (batch, out_width); autograd writes its backward pass.

    The module must be free of buffers that change and of random layers: a stack shares one description of it.
    """

    def __init__(self, module: nn.Module, in_width: int) -> None:
        self.module = copy.deepcopy(module).float().train()
        if any(True for _ in self.module.buffers()):
            raise ValueError(f"{type(module).__name__} keeps buffers (batch statistics?); a guest's encoder must not")
        if not any(True for _ in self.module.parameters()):
            raise ValueError(f"{type(module).__name__} has nothing to train; give a fit/transform model instead")
        self._shapes = {name: parameter.shape for name, parameter in self.module.named_parameters()}
        self.in_width = in_width
        with torch.no_grad():
            probe = self.module(torch.zeros(2, in_width))
        if probe.ndim != 2 or probe.shape[0] != 2:
            raise ValueError(
                f"{type(module).__name__} gave {tuple(probe.shape)} for (2, {in_width}); (2, latent) is right"
            )
        self.out_width = int(probe.shape[1])
        self.size = sum(shape.numel() for shape in self._shapes.values())

    def init(self, generator: torch.Generator) -> Tensor:
        """A fresh draw through the module's own `reset_parameters`, where its layers have one."""
        module = copy.deepcopy(self.module)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            for layer in module.modules():
                reset = getattr(layer, "reset_parameters", None)
                if callable(reset):
                    reset()
        return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Views of vectors (.., size) under the module's own names."""
        pieces = torch.split(flat, [shape.numel() for shape in self._shapes.values()], -1)
        return {
            name: piece.unflatten(-1, shape) if shape else piece.squeeze(-1)
            for (name, shape), piece in zip(self._shapes.items(), pieces, strict=True)
        }

    def forward(self, flat: Tensor, x: Tensor) -> list[Tensor]:
        """The parameters and input as autograd's leaves, and the output: (stack, batch, out_width)."""
        leaf, entry = flat.detach().requires_grad_(), x.detach().requires_grad_()
        with torch.enable_grad():
            output = torch.vmap(self._call)(leaf, entry)
        return [leaf, entry, output]

    def backward(
        self, flat: Tensor, tape: Sequence[Tensor], dy: Tensor, gradient: Tensor, *, to_input: bool
    ) -> Tensor | None:
        """Writes the gradient of every parameter into `gradient`; returns the input's where it is asked for."""
        leaf, entry, output = tape
        into_flat, into_entry = torch.autograd.grad(output, (leaf, entry), dy)
        gradient.copy_(into_flat)
        return into_entry if to_input else None

    def _call(self, flat: Tensor, x: Tensor) -> Tensor:
        output: Tensor = torch.func.functional_call(self.module, self.named(flat), (x,))
        return output
