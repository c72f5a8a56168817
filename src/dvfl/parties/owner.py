"""The owner: it holds labels and trains a head on the encodings of all hosts."""

import copy

import torch
from torch import Tensor

from dvfl.parties.absence import Absence
from dvfl.parties.numerics.learner import Learner, Rate, Rule
from dvfl.parties.objectives.objective import Supervision


class Owner:
    """A stack of owners. A row of parameters is the learned absent values of the senders, then the head's own."""

    def __init__(self, supervision: Supervision, widths: tuple[int, ...], parameters: Tensor, rule: Rule) -> None:
        self.supervision = supervision
        self.absence = Absence(widths, parameters.device)
        self.hold(Learner(parameters, rule))

    def part(self, elements: slice) -> "Owner":
        """Some elements of the stack, in the same memory."""
        part = copy.copy(self)
        part.hold(self.learner.part(elements))
        return part

    def hold(self, learner: Learner) -> None:
        """Takes a learner for its own."""
        self.learner, self._parts = learner, self.absence.split(learner)

    @staticmethod
    def init(supervision: Supervision, widths: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """One owner's first parameters; the absent values start at zero."""
        return torch.cat([torch.zeros(sum(widths)), supervision.head.init(generator)])

    def step(
        self,
        e: Tensor,
        y: Tensor,
        rate: Rate,
        *,
        present: Tensor | None = None,
        keep: Tensor | None = None,
        alive: Tensor | None = None,
    ) -> Tensor:
        """One update of the head on encodings `e` (stack, batch, inputs) and labels (Algorithm 1, owner's last lines).

        `present` (stack, batch, senders) hides whole senders; `keep` (stack, batch, inputs) holds the factors of
        ordinary dropout. Returns the losses.
        """
        columns = None if present is None else self.absence.columns(present)
        x = e if columns is None else self.absence.fill(self._parts.absent, e, columns)
        if keep is not None:
            x = x * keep
        _, loss, dx = self.supervision.learn(
            self._parts.rest, x, y, self._parts.rest_gradient, to_input=columns is not None
        )
        if columns is not None:
            assert dx is not None
            self.absence.learn(dx if keep is None else dx * keep, columns, self._parts.absent_gradient)
        else:
            self._parts.absent_gradient.zero_()  # as in Host.step
        self.learner.update(rate, alive)
        return loss

    def predict(self, e: Tensor, present: Tensor | None = None) -> Tensor:
        """The head's raw output (stack, batch, classes)."""
        if present is not None:
            e = self.absence.fill(self._parts.absent, e, self.absence.columns(present))
        return self.supervision.head.forward(self._parts.rest, e)[-1].detach()
