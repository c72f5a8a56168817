"""An attacker's own guest: an autoencoder learned on public rows, whose decoder inverts once encodings are translated.

The victim's encodings are mapped to the surrogate's by ridge from known pairs; the decoder, which has seen all public
rows, does the rest.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dvfl.parties.learner import Adam, Learner
from dvfl.parties.objectives import Reconstruction
from dvfl.parties.randomness import torch_generator
from dvfl.parties.sizes import decoder, leaky
from dvfl.privacy.alike import Alike
from dvfl.privacy.readers import Effort, ridge

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
        seen, draw = (public - centre) / spread, torch_generator(0, "surrogate's batches")
        for step in range(effort.steps):
            chosen = torch.randint(rows, (min(effort.batch, rows),), generator=draw).to(public.device)
            objective.learn(learner.parameters, seen[:, chosen].contiguous(), learner.gradient)
            learner.update(effort.rates[0] * (1 - step / effort.steps))
        return cls(objective, learner.parameters, centre, spread)

    def guess(self, group: Alike, known: Tensor) -> Tensor:
        """The victims' columns, from known rows (replicas, some)."""
        z, x = group.known(known)
        parameters, centre, spread = (group.each(own) for own in (self.parameters, self.centre, self.spread))
        codes = self.objective.encode(parameters, (x - centre) / spread)
        translated = ridge(z, codes)(group.victims)
        made = self.objective.decoder.forward(parameters[:, self.objective.encoder.size :], translated)[-1]
        return made * spread + centre
