"""What every trained party holds: parameters, the optimiser's moments and step counts, one row per stack element."""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

# A learning rate: a number, or a tensor of one element (where a CUDA graph reads it) or of one for each stack element.
Rate = float | Tensor


@dataclass(frozen=True)
class Adam:
    """Adam with L2 inside, as `torch.optim.Adam(weight_decay=...)`."""

    rate: float
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8


@dataclass(frozen=True)
class Sgd:
    """Stochastic gradient descent, as `torch.optim.SGD`."""

    rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0


Rule = Adam | Sgd


class Learner:
    """A stack of parameter vectors that one rule updates; a dead element's row does not move in any respect."""

    def __init__(self, parameters: Tensor, rule: Rule) -> None:
        self.rule = rule
        self.parameters = parameters.contiguous()  # (stack, size)
        self.gradient = torch.zeros_like(self.parameters)
        self.steps = torch.zeros(len(parameters), device=parameters.device)
        moments = 2 if isinstance(rule, Adam) else int(rule.momentum > 0)
        self.moments = [torch.zeros_like(self.parameters) for _ in range(moments)]
        self._rows = self._row_views()

    def part(self, elements: slice) -> "Learner":
        """Some elements of the stack, in the same memory."""
        part = copy.copy(self)
        part.parameters, part.gradient, part.steps = (
            tensor[elements] for tensor in (self.parameters, self.gradient, self.steps)
        )
        part.moments = [moment[elements] for moment in self.moments]
        part._rows = part._row_views()
        return part

    def update(self, rate: Rate, alive: Tensor | None = None) -> None:
        """One step along `self.gradient` for the elements that `alive`, (stack,) of booleans, marks; all without it."""
        if self.parameters.is_cuda:
            from dvfl.parties.numerics import kernels

            state = self.parameters, self.gradient, self.moments, self.steps
            if isinstance(self.rule, Sgd):
                kernels.sgd(self.rule, *state, rate, alive)
            else:
                kernels.adam(self.rule, *state, rate, alive)
        elif isinstance(rate, Tensor) and rate.numel() > 1:
            live = torch.ones(len(self.steps), dtype=torch.bool) if alive is None else alive
            for each in rate.unique():
                self._fused(float(each), live & (rate == each))
        else:
            self._fused(float(rate), alive)

    def state(self) -> dict[str, Tensor]:
        """Everything a restart needs."""
        named = {f"moment.{number}": moment for number, moment in enumerate(self.moments)}
        return {"parameters": self.parameters, "steps": self.steps, **named}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])

    def _row_views(self) -> list[list[Tensor]]:
        """Made once: on the CPU each live row is handed to the fused kernel as a tensor of its own."""
        return [list(tensor.unbind(0)) for tensor in (self.parameters, self.gradient, *self.moments, self.steps)]

    def _fused(self, rate: float, alive: Tensor | None) -> None:
        """The kernels behind PyTorch's fused optimisers: one pass over the live rows, each with its own step count."""
        rows, rule = self._rows, self.rule
        self.steps.add_(1 if alive is None else alive)
        if alive is not None:
            live = alive.nonzero().flatten().tolist()
            if not live:
                return
            rows = [[column[index] for index in live] for column in rows]
        parameters, gradients, *moments, steps = rows
        if isinstance(rule, Sgd):
            torch._fused_sgd_(
                parameters,
                gradients,
                moments[0] if moments else [],
                weight_decay=rule.weight_decay,
                momentum=rule.momentum,
                lr=rate,
                dampening=0.0,
                nesterov=False,
                maximize=False,
                is_first_step=False,  # the moments start at zero
            )
            return
        first, second = moments
        torch._fused_adam_(
            parameters,
            gradients,
            first,
            second,
            [],
            steps,
            lr=rate,
            beta1=rule.beta1,
            beta2=rule.beta2,
            weight_decay=rule.weight_decay,
            eps=rule.eps,
            amsgrad=False,
            maximize=False,
        )
