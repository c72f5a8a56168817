"""The operations that a step is made of, on stacks: PyTorch's on the CPU, fused ones (kernels.py) on a GPU."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Activation = Literal["identity", "relu", "leaky_relu", "sigmoid"]
SLOPE = 0.01  # of LeakyReLU's negative half-plane (the paper's appendix on models)

_aten = torch.ops.aten

_ACTIVATE: dict[Activation, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": torch.relu_,
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu_(x, SLOPE),
    "sigmoid": torch.sigmoid_,
}
# The gradient before an activation, from the gradient after it and the activation's own output; in place.
_DERIVE: dict[Activation, Callable[[Tensor, Tensor], Tensor]] = {
    "identity": lambda dy, y: dy,
    "relu": lambda dy, y: _aten.threshold_backward.grad_input(dy, y, 0, grad_input=dy),
    "leaky_relu": lambda dy, y: _aten.leaky_relu_backward.grad_input(dy, y, SLOPE, True, grad_input=dy),
    "sigmoid": lambda dy, y: _aten.sigmoid_backward.grad_input(dy, y, grad_input=dy),
}


def layer(x: Tensor, weight: Tensor, bias: Tensor, activation: Activation) -> Tensor:
    """`activation(x weight' + bias)`, with weight (stack, outputs, inputs) and bias (stack, 1, outputs)."""
    if not x.is_cuda:
        return _ACTIVATE[activation](torch.baddbmm(bias, x, weight.transpose(1, 2)))
    from dvfl.parties.numerics import kernels

    y = torch.bmm(x, weight.transpose(1, 2))
    kernels.add_bias_and_activate(y, bias, activation, SLOPE)
    return y


def before_activation(dy: Tensor, y: Tensor, activation: Activation, into_bias: Tensor) -> Tensor:
    """The gradient before an activation that gave `y`, in the memory of `dy`; its sum over rows is the bias's."""
    if not dy.is_cuda:
        dy = _DERIVE[activation](dy, y)
        torch.sum(dy, dim=1, keepdim=True, out=into_bias)
        return dy
    from dvfl.parties.numerics import kernels

    kernels.derive_and_sum(dy, y, activation, SLOPE, into_bias)
    return dy


def squared_error(y: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The mean squared error of each stack element, and its gradient."""
    count = y[0].numel()
    if not y.is_cuda:
        error = y - target
        loss = torch.linalg.vector_norm(error, dim=(1, 2)).square_().div_(count)
        return loss, error.mul_(2 / count)
    from dvfl.parties.numerics import kernels

    return kernels.squared_error(y, target)


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """`cross_entropy` against labels of which a part is spread over all classes alike.

    That adds `smoothing` times what a label's score exceeds the mean score by.
    """
    loss, dy = cross_entropy(logits, labels)
    if not smoothing:
        return loss, dy
    excess = logits.gather(2, labels[..., None]) - logits.mean(2, keepdim=True)
    share = smoothing / labels.shape[1]
    dy.scatter_(2, labels[..., None], share, reduce="add").sub_(share / logits.shape[2])
    return loss + excess.mean((1, 2)) * smoothing, dy


def averaged_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The same against the mean of several labels each, (stack, rows, labels)."""
    target = torch.zeros_like(logits).scatter_add_(2, labels, torch.ones_like(labels, dtype=logits.dtype))
    target = target.mul_((1 - smoothing) / labels.shape[2]).add_(smoothing / logits.shape[2])
    log_p = torch.log_softmax(logits, -1)
    loss = -(target * log_p).sum(2).mean(1)
    return loss, log_p.exp_().sub_(target).div_(labels.shape[1])


def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The mean cross-entropy of each stack element against class numbers (stack, rows), and its gradient."""
    if not logits.is_cuda:
        log_p = torch.log_softmax(logits, -1)
        loss = -log_p.gather(2, labels[..., None]).mean((1, 2))
        dy = log_p.exp_().scatter_(2, labels[..., None], -1.0, reduce="add")
        return loss, dy.div_(labels.shape[1])
    from dvfl.parties.numerics import kernels

    return kernels.cross_entropy(logits, labels)
