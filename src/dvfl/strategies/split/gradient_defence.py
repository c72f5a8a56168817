"""What a split network's host does to gradients before it sends them, so that they say less about labels.

Noise is added first, then lengths or values are hidden. `max_norm` is the max-norm heuristic of Li et al., "Label
leakage and protection in two-party split learning" (ICLR 2022): noise along each row's own gradient, so large that all
rows have the expected squared length of the batch's longest. `sign` sends signs alone, all of one size.

Noise comes from banks of patterns, as dropout's masks do, so that a round draws nothing.
"""

import math
from collections.abc import Sequence
from typing import get_args

import torch
from torch import Tensor

from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import PATTERNS, torch_generator
from dvfl.settings.training import Defence, SplitSettings
from dvfl.simulation.pattern_draws import Picks
from dvfl.simulation.rounds import Feed, Round

_TINY = 1e-30  # a shorter gradient has no direction


def gradient_defence(
    settings: SplitSettings,
    widths: Sequence[int],  # of the messages that a round sends back
    seeds: Sequence[int],
    feed: Feed,
    device: torch.device,
) -> "GradientDefence | None":
    """What the settings ask for; None where gradients are sent as they are."""
    if not settings.gradient_noise and settings.gradient_defence == "none":
        return None
    return GradientDefence(settings, widths, seeds, feed, device)


class GradientDefence:
    """The defences of all replicas' hosts. Each guest's gradient is a message of its own, and is defended by itself."""

    def __init__(
        self, settings: SplitSettings, widths: Sequence[int], seeds: Sequence[int], feed: Feed, device: torch.device
    ) -> None:
        self._noise, self._defence = settings.gradient_noise, settings.gradient_defence
        self._widths = list(widths)
        self._picks = Picks("gradient-noise", seeds, feed, device)
        kinds = sorted(set(seeds))
        self._base = torch.tensor([kinds.index(seed) * PATTERNS for seed in seeds], device=device)[:, None]
        # Of each pattern: one number a column for the noise, and one a message for that along a row's gradient.
        width = (sum(widths) if self._noise else 0) + (len(widths) if self._defence == "max_norm" else 0)
        banks = [torch.randn(PATTERNS, width, generator=torch_generator(seed, "gradient-noise")) for seed in kinds]
        self._bank = torch.cat(banks).to(device)

    def load(self, epoch: int, rounds: int, batch: int) -> None:
        """Draws which patterns the rounds of an epoch use."""
        self._picks.load(epoch, rounds, batch)

    def sent(self, dx: Tensor, t: Round, replicas: slice) -> Tensor:
        """What is sent in round `t` for some replicas in place of gradients (replicas, batch, all columns)."""
        parts = dx.split(self._widths, 2)
        return torch.cat([self.sent_to(number, dy, t, replicas) for number, dy in enumerate(parts)], 2)

    def sent_to(self, number: int, dy: Tensor, t: Round, replicas: slice) -> Tensor:
        """One message of them: (replicas, batch, latent)."""
        if self._noise:
            first = sum(self._widths[:number])
            dy = noisy(dy, self._drawn(first, self._widths[number], t, replicas), self._noise)
        if self._defence == "max_norm":
            first = (sum(self._widths) if self._noise else 0) + number
            return equally_long(dy, self._drawn(first, 1, t, replicas))
        return signs(dy) if self._defence == "sign" else dy

    def _drawn(self, first: int, count: int, t: Round, replicas: slice) -> Tensor:
        """Some columns of the patterns that rows meet: (replicas, batch, count)."""
        picks = self._picks.at(t, replicas) + self._base[replicas]
        return self._bank[:, first : first + count].index_select(0, picks.flatten()).view(*picks.shape, count)


def check_defence(s: SplitSettings) -> None:
    """Refuses what is no defence."""
    if not 0 <= s.gradient_noise < math.inf:
        raise UserError(f"gradient_noise {s.gradient_noise}: 0 or more is right")
    if s.gradient_defence not in get_args(Defence):
        raise UserError(f"gradient_defence {s.gradient_defence}: one of {', '.join(get_args(Defence))} is right")


def noisy(dy: Tensor, draw: Tensor, share: float) -> Tensor:
    """Gradients (.., rows, latent) with normal noise `draw` that is `share` times as long as rows are on average."""
    length: Tensor = torch.linalg.vector_norm(dy, dim=-1, keepdim=True).mean(-2, keepdim=True)
    return dy + draw * (length * (share / math.sqrt(dy.shape[-1])))


def equally_long(dy: Tensor, draw: Tensor) -> Tensor:
    """Gradients with noise along each row, by a normal `draw` (.., rows, 1): squared lengths come to the largest."""
    length: Tensor = torch.linalg.vector_norm(dy, dim=-1, keepdim=True)
    lacking = (length.amax(-2, keepdim=True).square() - length.square()).sqrt()
    return dy + dy / length.clamp(min=_TINY) * lacking * draw


def signs(dy: Tensor) -> Tensor:
    """The gradients' signs, times the batch's mean absolute value."""
    size = dy.abs().mean((-2, -1), keepdim=True)
    return dy.sign() * size
