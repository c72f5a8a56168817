"""An attacker's own guest: an autoencoder learned on public rows, whose decoder inverts once encodings are translated.

The victim's encodings are mapped to the surrogate's by ridge from known pairs; the decoder, which has seen all public
rows, does the rest.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dvfl.audit.readers.alike import Alike
from dvfl.audit.readers.readers import Effort, ridge, trained
from dvfl.parties.networks.sizes import decoder, leaky
from dvfl.parties.numerics.learner import Adam, Learner
from dvfl.parties.numerics.randomness import torch_generator
from dvfl.parties.objectives.objective import Reconstruction

_WIDEST = 32  # of the surrogate's encodings: a narrow middle leaves less for known pairs to determine


@dataclass(frozen=True)
class Surrogate:
    """One autoencoder a guest."""

    objective: Reconstruction
    parameters: Tensor  # (guests, size)
    centre: Tensor  # (guests, 1, columns)
    spread: Tensor  # (guests, 1, 1)

    @classmethod
    def learned(cls, public: Tensor, latent: int, effort: Effort) -> "Surrogate":
        """On public rows (guests, rows, columns)."""
        guests, rows, columns = public.shape
        encoder = leaky((columns, effort.hidden[0], min(latent, columns, _WIDEST)))
        objective = Reconstruction(encoder, decoder(encoder, "identity"))
        start = objective.init(torch_generator(0, "surrogate")).to(public.device)
        learner = Learner(start.repeat(guests, 1), Adam(effort.rates[0], 1e-5))
        centre = public.mean(1, keepdim=True)
        spread = (public - centre).square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-6)
        seen = (public - centre) / spread
        rate = torch.full((1,), effort.rates[0], device=public.device)

        def step(chosen: Tensor) -> None:
            objective.learn(learner.parameters, seen.index_select(1, chosen), learner.gradient)
            learner.update(rate)

        for done in trained(step, rows, effort, public.device):
            rate.fill_(effort.rates[0] * (1 - done / effort.steps))
        return cls(objective, learner.parameters, centre, spread)

    def guess(self, group: Alike, known: Tensor) -> Tensor:
        """The victims' columns, from known rows (replicas, some)."""
        z, x = group.known(known)
        parameters, centre, spread = (group.each(own) for own in (self.parameters, self.centre, self.spread))
        codes = self.objective.encode(parameters, (x - centre) / spread)
        translated = ridge(z, codes)(group.victims)
        made = self.objective.decoder.forward(parameters[:, self.objective.encoder.size :], translated)[-1]
        return made * spread + centre
