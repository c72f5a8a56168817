"""Absent parties: a mask over a party's columns and the value learned to stand in their place.

Party-wise dropout uses the same mask: a guest dropped at a host, or a host at the owner, is absent for that row.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from dvfl.parties.numerics.learner import Learner


class Split(NamedTuple):
    """The two parts of a learner's rows and of their gradient: the absent values, and everything else."""

    absent: Tensor
    rest: Tensor
    absent_gradient: Tensor
    rest_gradient: Tensor


class Absence:
    """The joint input of several senders, `widths` columns each, any of which may be absent for a row."""

    def __init__(self, widths: tuple[int, ...], device: torch.device) -> None:
        senders = torch.arange(len(widths)).repeat_interleave(torch.tensor(widths))
        self._sender = senders.to(device)  # of each column
        self.size = len(senders)

    def split(self, learner: Learner) -> Split:
        """The parts of a learner whose rows begin with the absent values, in its memory."""
        at, parameters, gradient = self.size, learner.parameters, learner.gradient
        return Split(parameters[:, :at], parameters[:, at:], gradient[:, :at], gradient[:, at:])

    def columns(self, present: Tensor) -> Tensor:
        """(stack, batch, senders) of booleans to (stack, batch, columns)."""
        return present.index_select(2, self._sender)

    def fill(self, absent: Tensor, x: Tensor, columns: Tensor) -> Tensor:
        """`x` with the learned values `absent` (stack, columns) where a sender is absent."""
        return torch.where(columns, x, absent[:, None, :])

    def learn(self, dx: Tensor, columns: Tensor, gradient: Tensor) -> None:
        """Writes the gradient of the absent values from that of the filled input."""
        torch.sum(dx.masked_fill(columns, 0), dim=1, out=gradient)
