"""Early stopping of every replica for itself: the parameters that were best on its held-out rows."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dvfl.parties.numerics.learner import Learner


class EarlyStopping:
    """The best held-out score of each replica, the parameters that gave it, and the epochs since.

    A replica that has not beaten `guess`, the score of a constant output, goes on: plain SGD can stay near it for many
    epochs and still learn. Rows of the learners' stacks are replicas x parties, replica by replica.
    """

    def __init__(self, learners: Sequence[Learner], guess: Tensor, patience: int) -> None:
        self._learners, self._guess, self._patience = learners, guess, patience
        replicas, device = len(guess), guess.device
        self._best = torch.full((replicas,), -math.inf, device=device)
        self._since = torch.zeros(replicas, device=device)
        self._kept = [learner.parameters.clone() for learner in learners]
        self.alive = torch.ones(replicas, dtype=torch.bool, device=device)  # stays in place: graphs read it
        self.going = np.ones(replicas, bool)  # the same where Python reads it

    @property
    def stopped(self) -> bool:
        """Every replica."""
        return not self.going.any()

    def note(self, score: Tensor) -> None:
        """Takes the scores (replicas,) after an epoch."""
        better = (score > self._best) & self.alive
        self._best = torch.where(better, score, self._best)
        for learner, kept in zip(self._learners, self._kept, strict=True):
            marked = better.repeat_interleave(len(kept) // len(better))
            kept.copy_(torch.where(marked[:, None], learner.parameters, kept))
        reset = better | ~(self._best > self._guess)
        self._since = torch.where(reset, torch.zeros_like(self._since), self._since + 1)
        self._update()

    def finish(self) -> None:
        """Goes back to the best parameters."""
        for learner, kept in zip(self._learners, self._kept, strict=True):
            learner.parameters.copy_(kept)

    def state(self) -> dict[str, Tensor]:
        """What a restart needs."""
        kept = {f"best_parameters.{number}": tensor for number, tensor in enumerate(self._kept)}
        return {"best": self._best, "since": self._since, **kept}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Takes back what `state` gave."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
        self._update()

    def _update(self) -> None:
        self.alive.copy_(self._since <= self._patience)
        self.going = self.alive.cpu().numpy()
