"""Guests that send wrong encodings, in stacks: in rounds to the hosts, and of whole tables to the owner."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.parties.faults.corruption import How, Phase, corrupted
from dvfl.parties.faults.fault_set import Faults
from dvfl.parties.numerics.randomness import numpy_generator, torch_generator
from dvfl.simulation.rounds import Feed, Round

_NOISES = 64  # batches of noise that rounds draw from


class WrongEncodings:
    """Guests of a group that send wrong encodings in one phase, in a stack of replicas x members."""

    def __init__(
        self, phase: Phase, faults: Sequence[Faults], members: Sequence[str], latent: int, device: torch.device
    ) -> None:
        self._latent, self._device = latent, device
        self._wrong: dict[How, list[int]] = {}
        for replica, one in enumerate(faults):
            wrong = one.corruption
            if wrong is not None and wrong.phase == phase and wrong.guest in members:
                element = replica * len(members) + members.index(wrong.guest)
                self._wrong.setdefault(wrong.how, []).append(element)

    def __bool__(self) -> bool:
        return bool(self._wrong)

    def elements(self, among: slice) -> dict[How, Tensor]:
        """Who is wrong among some of the stack's elements, counted from the first of them."""
        start, stop, _ = among.indices(1 << 62)
        found = {how: [e - start for e in elements if start <= e < stop] for how, elements in self._wrong.items()}
        return {how: torch.tensor(elements, device=self._device) for how, elements in found.items() if elements}

    def spoil(self, code: Tensor, wrong: dict[How, Tensor], order: Tensor, noise: Tensor) -> None:
        """Puts wrong encodings in the place of the right ones in (elements, rows, latent)."""
        for how, elements in wrong.items():
            code.index_copy_(0, elements, corrupted(code.index_select(0, elements), how, order, noise))

    def spoiled_table(self, code: Tensor, first_row: int) -> Tensor:
        """The same for rows of whole tables, (replicas, members, rows, latent), of which these are a part."""
        if not self:
            return code
        rows = code.shape[2]
        luck = numpy_generator(0, "wrong rows", first_row)
        order = torch.from_numpy(luck.permutation(rows)).to(self._device)
        noise = torch.randn(rows, self._latent, generator=torch_generator(0, "wrong noise", first_row))
        flat = code.flatten(0, 1).clone()
        self.spoil(flat, self.elements(slice(None)), order, noise.to(self._device))
        return flat.view(code.shape)


class Spoiler:
    """The luck of wrong encodings in rounds: shuffles and noise, an entry a round."""

    def __init__(self, feed: Feed, batch: int, latents: Sequence[int], device: torch.device) -> None:
        self._feed, self._batch = feed, batch
        self._noises = {
            latent: torch.randn(_NOISES, batch, latent, generator=torch_generator(0, "noise", latent)).to(device)
            for latent in set(latents)
        }

    def load(self, rounds: NDArray[np.int64]) -> None:
        """Prepares rounds, given by their numbers since the beginning."""
        order = [numpy_generator(0, "wrong order", int(t)).permutation(self._batch) for t in rounds]
        self._feed.load("wrong order", np.stack(order))
        self._feed.load("wrong noise", rounds % _NOISES)

    def at(self, t: Round, latent: int) -> tuple[Tensor, Tensor]:
        """A shuffle of the batch's rows, and noise (batch, latent)."""
        pick = self._feed.at("wrong noise", t)
        noise = self._noises[latent].index_select(0, pick.view(1)).squeeze(0)
        return self._feed.at("wrong order", t), noise
