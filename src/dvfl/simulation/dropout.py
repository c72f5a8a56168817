"""Dropout whose masks come from a bank, so that a round costs a gather and no random numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dvfl.parties.numerics.randomness import PATTERNS, patterns
from dvfl.simulation.pattern_draws import Picks
from dvfl.simulation.rounds import Feed, Round


class Dropout:
    """Masks of `width` values that are kept with a probability of each replica's own, row by row."""

    def __init__(
        self, name: str, width: int, keep: Sequence[float], seeds: Sequence[int], feed: Feed, device: torch.device
    ) -> None:
        self._picks = Picks(name, seeds, feed, device)
        kinds = sorted(set(zip(seeds, keep, strict=True)))
        banks = [patterns(PATTERNS, width, probability, seed, name) for seed, probability in kinds]
        self._bank = torch.cat(banks).to(device)
        self._keep = torch.tensor([probability for _, probability in kinds], device=device)
        first = [kinds.index(kind) * PATTERNS for kind in zip(seeds, keep, strict=True)]
        self._base = torch.tensor(first, device=device)[:, None]

    def scaled(self) -> "Dropout":
        """The masks as factors that keep the mean."""
        self._bank = self._bank.float() / self._keep.repeat_interleave(PATTERNS)[:, None]
        return self

    def never_all(self) -> "Dropout":
        """The masks with those that would drop everything keeping everything."""
        self._bank |= ~self._bank.any(1, keepdim=True)
        return self

    def load(self, epoch: int, rounds: int, batch: int, part: slice = slice(None)) -> None:
        """Draws which masks the rounds of an epoch use, and prepares those of a part of it."""
        self._picks.load(epoch, rounds, batch, part)

    def at(self, t: Round, replicas: slice | Tensor, party: Tensor | None = None) -> Tensor:
        """The masks of round `t` for some replicas: (replicas, batch, width).

        Parties of a replica that are given by their numbers have masks of their own.
        """
        picks = self._picks.at(t, replicas, party)
        return self._bank.index_select(0, (picks + self._base[replicas]).flatten()).view(*picks.shape, -1)
