"""CUDA kernels in Triton: several of PyTorch's passes in one. Imported only where a GPU is used.

Networks here are small and many, so time goes into starting kernels and moving bytes, not into arithmetic. Matrix
products stay with PyTorch.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from dvfl.parties.numerics.learner import Adam, Rate, Sgd

_ACTIVATIONS = {"identity": 0, "relu": 1, "leaky_relu": 2, "sigmoid": 3}
_BLOCK = 1024
_ROWS, _COLUMNS = 64, 32  # of a tile


def add_bias_and_activate(y: Tensor, bias: Tensor, activation: str, slope: float) -> None:
    """`activation(y + bias)` in place."""
    stack, rows, width = y.shape
    _add_bias_and_activate[(triton.cdiv(rows * width, _BLOCK), stack)](
        y, bias, rows * width, width, bias.stride(0), slope, activation=_ACTIVATIONS[activation], block=_BLOCK
    )


def derive_and_sum(dy: Tensor, y: Tensor, activation: str, slope: float, into_bias: Tensor) -> None:
    """Multiplies `dy` by the derivative of the activation that gave `y`, in place; writes its sum over rows."""
    stack, rows, width = dy.shape
    _derive_and_sum[(triton.cdiv(width, _COLUMNS), stack)](
        dy, y, into_bias, rows, width, into_bias.stride(0), slope,
        activation=_ACTIVATIONS[activation], row_tile=_ROWS, column_tile=_COLUMNS,
    )  # fmt: skip


def squared_error(y: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The mean squared error of each stack element, and its gradient."""
    target = target.contiguous()
    loss, gradient = torch.empty(len(y), device=y.device), torch.empty_like(y)
    _squared_error[(len(y),)](y, target, gradient, loss, y[0].numel(), block=2 * _BLOCK, num_warps=8)
    return loss, gradient


def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The mean cross-entropy of each stack element against class numbers, and its gradient."""
    stack, rows, classes = logits.shape
    loss, gradient = torch.empty(stack, device=logits.device), torch.empty_like(logits)
    _cross_entropy[(stack,)](
        logits, labels.contiguous(), gradient, loss, rows, classes,
        row_tile=_ROWS, class_tile=triton.next_power_of_2(classes),
    )  # fmt: skip
    return loss, gradient


def adam(
    rule: Adam, parameters: Tensor, gradient: Tensor, moments: list[Tensor], steps: Tensor, rate: Rate,
    alive: Tensor | None,
) -> None:  # fmt: skip
    """One masked Adam step of a whole stack in one pass; `steps` counts per element."""
    _adam[_blocks(parameters)](
        parameters, gradient, *moments, steps, *_stepping(parameters, steps, rate, alive),
        beta1=rule.beta1, beta2=rule.beta2, eps=rule.eps, decay=rule.weight_decay,
        masked=alive is not None, block=_BLOCK,
    )  # fmt: skip


def sgd(
    rule: Sgd, parameters: Tensor, gradient: Tensor, moments: list[Tensor], steps: Tensor, rate: Rate,
    alive: Tensor | None,
) -> None:  # fmt: skip
    """The same for gradient descent with momentum."""
    _sgd[_blocks(parameters)](
        parameters, gradient, moments[0] if moments else gradient, *_stepping(parameters, steps, rate, alive),
        momentum=rule.momentum, decay=rule.weight_decay, masked=alive is not None, block=_BLOCK,
    )  # fmt: skip


def _blocks(parameters: Tensor) -> tuple[int, int]:
    stack, size = parameters.shape
    return triton.cdiv(size, _BLOCK), stack


def _stepping(
    parameters: Tensor, steps: Tensor, rate: Rate, alive: Tensor | None
) -> tuple[Tensor, Tensor, int, int]:  # fmt: skip
    """Counts the step, and gives what both optimisers read alike: who is alive, the rate and its stride, the size."""
    steps.add_(1 if alive is None else alive)
    rate = rate if isinstance(rate, Tensor) else torch.full((1,), rate, device=parameters.device)
    return steps if alive is None else alive.contiguous(), rate, int(rate.numel() > 1), parameters.shape[1]


@triton.jit
def _add_bias_and_activate(y, bias, size, width, bias_stack, slope, activation: tl.constexpr,
                           block: tl.constexpr):  # fmt: skip
    element = tl.program_id(1).to(tl.int64)
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < size
    z = tl.load(y + element * size + offsets, inside) + tl.load(bias + element * bias_stack + offsets % width, inside)
    if activation == 1:
        z = tl.maximum(z, 0.0)
    elif activation == 2:
        z = tl.where(z > 0, z, z * slope)
    elif activation == 3:
        z = 1 / (1 + tl.exp(-z))
    tl.store(y + element * size + offsets, z, inside)


@triton.jit
def _derive_and_sum(dy, y, into_bias, rows, width, bias_stack, slope, activation: tl.constexpr,
                    row_tile: tl.constexpr, column_tile: tl.constexpr):  # fmt: skip
    element = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * column_tile + tl.arange(0, column_tile)
    sums = tl.zeros((column_tile,), tl.float32)
    for start in range(0, rows, row_tile):
        row = start + tl.arange(0, row_tile)
        at = element * rows * width + row[:, None] * width + columns[None, :]
        inside = (row[:, None] < rows) & (columns[None, :] < width)
        d = tl.load(dy + at, inside, 0.0)
        if activation != 0:
            out = tl.load(y + at, inside, 0.0)
            if activation == 1:
                d = tl.where(out > 0, d, 0.0)
            elif activation == 2:
                d = tl.where(out > 0, d, d * slope)
            elif activation == 3:
                d = d * out * (1 - out)
            tl.store(dy + at, d, inside)
        sums += tl.sum(d, 0)
    tl.store(into_bias + element * bias_stack + columns, sums, columns < width)


@triton.jit
def _squared_error(y, target, gradient, loss, size, block: tl.constexpr):
    element = tl.program_id(0).to(tl.int64)
    sums = tl.zeros((block,), tl.float32)
    for start in range(0, size, block):
        offsets = start + tl.arange(0, block)
        inside = offsets < size
        at = element * size + offsets
        error = tl.load(y + at, inside, 0.0) - tl.load(target + at, inside, 0.0)
        tl.store(gradient + at, error * (2.0 / size), inside)
        sums += error * error
    tl.store(loss + element, tl.sum(sums, 0) / size)


@triton.jit
def _cross_entropy(logits, labels, gradient, loss, rows, classes, row_tile: tl.constexpr,
                   class_tile: tl.constexpr):  # fmt: skip
    element = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, class_tile)[None, :]
    sums = tl.zeros((row_tile,), tl.float32)
    for start in range(0, rows, row_tile):
        row = start + tl.arange(0, row_tile)
        inside = (row[:, None] < rows) & (column < classes)
        at = (element * rows + row[:, None]) * classes + column
        z = tl.load(logits + at, inside, float("-inf"))
        z = tl.where(row[:, None] < rows, z, 0.0)  # rows beyond the last: any finite number
        top = tl.max(z, 1)
        total = tl.sum(tl.exp(z - top[:, None]), 1)
        label = tl.load(labels + element * rows + row, row < rows, 0)
        hit = column == label[:, None]
        log_p = z - top[:, None] - tl.log(total)[:, None]
        sums -= tl.where(row < rows, tl.sum(tl.where(hit, log_p, 0.0), 1), 0.0)
        tl.store(gradient + at, (tl.exp(log_p) - tl.where(hit, 1.0, 0.0)) / rows, inside)
    tl.store(loss + element, tl.sum(sums, 0) / rows)


@triton.jit
def _adam(parameters, gradient, first, second, steps, alive, rate, rate_stride, size,
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
    p = p - tl.load(rate + element * rate_stride) / correction1 * m / denominator
    tl.store(parameters + at, p, inside)
    tl.store(first + at, m, inside)
    tl.store(second + at, v, inside)


@triton.jit
def _sgd(parameters, gradient, velocity, alive, rate, rate_stride, size, momentum: tl.constexpr, decay: tl.constexpr,
         masked: tl.constexpr, block: tl.constexpr):  # fmt: skip
    element = tl.program_id(1).to(tl.int64)
    if masked:
        if tl.load(alive + element) == 0:
            return
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < size
    at = element * size + offsets
    p = tl.load(parameters + at, inside)
    g = tl.load(gradient + at, inside)
    if decay != 0:
        g += decay * p
    if momentum != 0:
        g += momentum * tl.load(velocity + at, inside)
        tl.store(velocity + at, g, inside)
    tl.store(parameters + at, p - tl.load(rate + element * rate_stride) * g, inside)
