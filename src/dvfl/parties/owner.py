"""The owner: it holds labels and trains a head on the encodings of all hosts."""

import torch
from torch import Tensor

from dvfl.parties.absence import Absence
from dvfl.parties.learner import Learner, Rate, Rule
from dvfl.parties.objectives import Supervision


class Owner:
    """A stack of owners. A row of parameters is the learned absent values of the senders, then the head's own."""

    def __init__(self, supervision: Supervision, widths: tuple[int, ...], parameters: Tensor, rule: Rule) -> None:
        self.supervision = supervision
        self.absence = Absence(widths, parameters.device)
        self.learner = Learner(parameters, rule)

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
        cut, learner = self.absence.size, self.learner
        columns = None if present is None else self.absence.columns(present)
        x = e if columns is None else self.absence.fill(learner.parameters[:, :cut], e, columns)
        if keep is not None:
            x = x * keep
        _, loss, dx = self.supervision.learn(
            learner.parameters[:, cut:], x, y, learner.gradient[:, cut:], to_input=columns is not None
        )
        if columns is not None:
            assert dx is not None
            self.absence.learn(dx if keep is None else dx * keep, columns, learner.gradient[:, :cut])
        else:
            learner.gradient[:, :cut].zero_()  # as in Host.step
        learner.update(rate, alive)
        return loss

    def predict(self, e: Tensor, present: Tensor | None = None) -> Tensor:
        """The head's raw output (stack, batch, classes)."""
        cut, parameters = self.absence.size, self.learner.parameters
        if present is not None:
            e = self.absence.fill(parameters[:, :cut], e, self.absence.columns(present))
        return self.supervision.head.forward(parameters[:, cut:], e)[-1].detach()
