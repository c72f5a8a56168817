"""A host: it aggregates what guests pushed, fresh or stale, into one encoding, without labels."""

import copy
from typing import Literal

import torch
from torch import Tensor

from dvfl.parties.absence import Absence
from dvfl.parties.numerics.learner import Learner, Rate, Rule
from dvfl.parties.objectives.objective import Objective

HostModel = Literal["autoencoder", "concatenate"]


class Host:
    """A stack of hosts. A row of parameters is the learned absent values of the guests, then the objective's own."""

    def __init__(self, objective: Objective, widths: tuple[int, ...], parameters: Tensor, rule: Rule) -> None:
        self.objective = objective
        self.absence = Absence(widths, parameters.device)
        self.hold(Learner(parameters, rule))

    def part(self, elements: slice) -> "Host":
        """Some elements of the stack, in the same memory."""
        part = copy.copy(self)
        part.hold(self.learner.part(elements))
        return part

    def hold(self, learner: Learner) -> None:
        """Takes a learner for its own."""
        self.learner, self._parts = learner, self.absence.split(learner)

    @staticmethod
    def init(objective: Objective, widths: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """One host's first parameters; the absent values start at zero."""
        return torch.cat([torch.zeros(sum(widths)), objective.init(generator)])

    def step(
        self,
        b: Tensor,
        rate: Rate,
        *,
        present: Tensor | None = None,
        dropped: Tensor | None = None,
        alive: Tensor | None = None,
        copies: Tensor | None = None,
    ) -> Tensor:
        """One host training round on inputs `b` (stack, batch, W_g) (Algorithm 1, host lines 7 to 9); the losses.

        `present` (stack, batch, guests) marks the guests that were heard at all: only they count in the loss.
        `dropped` marks guests hidden by party-wise dropout: the host sees their absent value, and learns to
        reconstruct what they had sent.

        `copies` (stack, 2 x batch, W_g) is what an objective that compares copies of `b` sees in its place. Dropped
        guests are hidden from the first: the host learns to encode it like the second, which has them.
        """
        if copies is None and self.objective.copies > 1:
            raise ValueError(f"{type(self.objective).__name__} compares copies of its input, and none are given")
        seen = _both(present, None if dropped is None else ~dropped)
        x = b if copies is None else copies
        if seen is None:
            loss = self.objective.learn(self._parts.rest, x, self._parts.rest_gradient).loss
            self._parts.absent_gradient.zero_()  # nobody was absent: what an earlier step left there must not act again
        else:
            if copies is not None:
                seen = torch.cat([seen, torch.ones_like(seen) if present is None else present], 1)
            columns = self.absence.columns(seen)
            x = self.absence.fill(self._parts.absent, x, columns)
            counted = None if present is None else self.absence.columns(present)
            _, loss, dx = self.objective.learn(
                self._parts.rest, x, self._parts.rest_gradient, target=b, counted=counted, to_input=True
            )
            assert dx is not None
            self.absence.learn(dx, columns, self._parts.absent_gradient)
        self.learner.update(rate, alive)
        return loss

    def encode(self, b: Tensor, present: Tensor | None = None) -> Tensor:
        """Encodings (stack, batch, W_h) of inputs (stack, batch, W_g)."""
        if present is not None:
            b = self.absence.fill(self._parts.absent, b, self.absence.columns(present))
        return self.objective.encode(self._parts.rest, b)


def _both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


class ConcatenatingHost:
    """A host without parameters: where nothing is compressed, concatenation alone aggregates."""

    def __init__(self, widths: tuple[int, ...], device: torch.device) -> None:
        self.absence = Absence(widths, device)

    def encode(self, b: Tensor, present: Tensor | None = None) -> Tensor:
        """The inputs themselves; an absent guest's columns are zero."""
        return b if present is None else b.masked_fill(~self.absence.columns(present), 0)
