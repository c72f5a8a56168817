"""CUDA kernels in Triton, for what PyTorch has no single operation for. Imported only where a GPU is used."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from dvfl.parties.learner import Adam, Rate

_BLOCK = 1024


@triton.jit
def _adam(parameters, gradient, first, second, steps, alive, rate, size,
          beta1: tl.constexpr, beta2: tl.constexpr, eps: tl.constexpr, decay: tl.constexpr,
          masked: tl.constexpr, block: tl.constexpr):  # fmt: skip
    element = tl.program_id(1).to(tl.int64)
    if masked:
        if tl.load(alive + element) == 0:
            return
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < size
    at = element * size + offsets
    p = tl.load(parameters + at, inside)
    g = tl.load(gradient + at, inside) + decay * p
    m = tl.load(first + at, inside)
    v = tl.load(second + at, inside)
    m = m + (1 - beta1) * (g - m)
    v = beta2 * v + (1 - beta2) * g * g
    step = tl.load(steps + element)
    correction1 = 1 - tl.exp2(step * tl.log2(beta1 + 0.0))
    correction2 = 1 - tl.exp2(step * tl.log2(beta2 + 0.0))
    denominator = tl.sqrt(v) / tl.sqrt(correction2) + eps
    p = p - tl.load(rate) / correction1 * m / denominator
    tl.store(parameters + at, p, inside)
    tl.store(first + at, m, inside)
    tl.store(second + at, v, inside)


def adam(
    rule: Adam, parameters: Tensor, gradient: Tensor, moments: list[Tensor], steps: Tensor, rate: Rate,
    alive: Tensor | None,
) -> None:  # fmt: skip
    """One masked Adam step of a whole stack in one pass; `steps` counts per element."""
    steps.add_(1 if alive is None else alive)
    stack, size = parameters.shape
    rate = rate if isinstance(rate, Tensor) else torch.full((1,), rate, device=parameters.device)
    _adam[(triton.cdiv(size, _BLOCK), stack)](
        parameters, gradient, *moments, steps, steps if alive is None else alive, rate, size,
        beta1=rule.beta1, beta2=rule.beta2, eps=rule.eps, decay=rule.weight_decay,
        masked=alive is not None, block=_BLOCK,
    )  # fmt: skip
