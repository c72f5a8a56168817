"""A guest: it holds columns, learns to encode them without labels, and pushes encodings one way."""

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.numerics.learner import Learner, Rate, Rule
from dvfl.parties.objectives.objective import Objective


class Guest:
    """A stack of guests of one shape (a real guest is a stack of one)."""

    def __init__(self, objective: Objective, parameters: Tensor, rule: Rule) -> None:
        self.objective = objective
        self.hold(Learner(parameters, rule))

    def part(self, elements: slice) -> "Guest":
        """Some elements of the stack, in the same memory."""
        part = copy.copy(self)
        part.hold(self.learner.part(elements))
        return part

    def hold(self, learner: Learner) -> None:
        """Takes a learner for its own."""
        self.learner = learner

    def step(
        self, x: Tensor, rate: Rate, alive: Tensor | None = None, seen: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """One guest training round (the paper's Algorithm 1, guest lines 2 to 10).

        `seen` is what it sees in place of `x`: as much of it as is not hidden, to reconstruct all of it from, or the
        copies (stack, copies x batch, columns) that its objective compares. What it pushes is the encoding of `x`.

        Returns the encodings to push, made before the update, and the loss of each element. The caller pushes
        (line 6): a guest knows no transport.
        """
        learner = self.learner
        if seen is None and self.objective.copies > 1:
            raise ValueError(f"{type(self.objective).__name__} compares copies of its input, and none are given")
        if seen is None:
            code, loss, _ = self.objective.learn(learner.parameters, x, learner.gradient)
        else:
            code = self.encode(x)
            loss = self.objective.learn(learner.parameters, seen, learner.gradient, target=x).loss
        learner.update(rate, alive)
        return code, loss

    def encode(self, x: Tensor) -> Tensor:
        """Encodings of (stack, batch, columns) by the current parameters."""
        return self.objective.encode(self.learner.parameters, x)


class FitTransform(Protocol):
    """The part of scikit-learn's transformers that a guest needs."""

    def fit(self, x: NDArray[np.float32]) -> Any: ...
    def transform(self, x: NDArray[np.float32]) -> Any: ...


class FittedGuest:
    """A guest that is no network: a model fitted once on its own training rows, PCA for one.

    All replicas share one model, or each has its own.
    """

    def __init__(self, models: Sequence[FitTransform], latent: int) -> None:
        self.models = tuple(models)
        self.latent = latent

    @property
    def model(self) -> FitTransform:
        """The one that all replicas share."""
        if len(self.models) > 1:
            raise ValueError(f"{len(self.models)} replicas have a model each; there is none that they share")
        return self.models[0]

    def encode(self, x: Tensor) -> Tensor:
        """Encodings (rows, latent) of (rows, columns); where replicas have models or rows of their own, one behind the
        other: (replicas, rows, ..)."""
        if len(self.models) == 1:
            return self._made(self.model, x.flatten(0, -2)).view(*x.shape[:-1], -1)
        each = x if x.dim() == 3 else x.expand(len(self.models), -1, -1)
        return torch.stack([self._made(model, own) for model, own in zip(self.models, each, strict=True)])

    def _made(self, model: FitTransform, x: Tensor) -> Tensor:
        codes = np.asarray(model.transform(x.cpu().numpy()), dtype=np.float32)
        if codes.shape != (len(x), self.latent):
            raise ValueError(f"{type(model).__name__} gave {codes.shape}; {(len(x), self.latent)} is right")
        return torch.from_numpy(codes).to(x.device)
