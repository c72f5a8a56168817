"""Which pattern of a bank each row meets, drawn once an epoch, so that a round costs a gather and no random numbers."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dvfl.parties.numerics.randomness import PATTERNS, numpy_generator
from dvfl.simulation.rounds import Feed, Round

_APART = 997  # patterns between those of two parties


class Picks:
    """Numbers of patterns; replicas with the same seed share their luck."""

    def __init__(self, name: str, seeds: Sequence[int], feed: Feed, device: torch.device) -> None:
        self._name, self._feed = name, feed
        self._seeds = sorted(set(seeds))
        self._of = torch.tensor([self._seeds.index(seed) for seed in seeds], device=device)

    def load(self, epoch: int, rounds: int, batch: int, part: slice = slice(None)) -> None:
        """Draws which patterns the rounds of an epoch use, and prepares those of a part of it."""
        picks = [numpy_generator(s, self._name, epoch).integers(PATTERNS, size=(rounds, batch)) for s in self._seeds]
        self._feed.load(self._name, np.stack(picks, 1)[part])

    def at(self, t: Round, replicas: slice | Tensor, party: Tensor | None = None) -> Tensor:
        """The picks of round `t` for some replicas: (replicas, batch).

        Parties of a replica that are given by their numbers have picks of their own.
        """
        picks = self._feed.at(self._name, t).index_select(0, self._of[replicas])
        return picks if party is None else (picks + party[:, None] * _APART) % PATTERNS
