"""An objective that keeps columns out of encodings: a guest learns against a decoder of its own.

The decoder learns to reconstruct the guest's columns from its encodings, and the encoder, beside its contrastive
objective, to make that go wrong: gradients are reversed between them (Ganin et al., "Domain-adversarial training of
neural networks", 2016; Li et al., "DeepObfuscator", 2021, train encoders against a decoder so).
"""

import math
from functools import partial

import torch
from torch import Tensor

from dvfl.parties.networks.modules import Net
from dvfl.parties.numerics.operations import squared_error
from dvfl.parties.objectives.contrastive import Contrastive, nt_xent
from dvfl.parties.objectives.objective import Learned, encoded, judged

_LEAST_VARIANCE = 1e-12  # that is divided by


class Adversarial:
    """SimCLR's loss less `weight` times the share of a batch's variance that an adversary leaves unexplained.

    The adversary decodes encodings of the rows themselves, as they are sent, not of altered copies. Once it does no
    better than the batch's mean the encoder has nothing more to gain, so that neither runs away from the other.
    """

    copies = Contrastive.copies

    def __init__(self, contrastive: Contrastive, adversary: Net, weight: float) -> None:
        encoder = contrastive.encoder
        if (adversary.in_width, adversary.out_width) != (encoder.out_width, encoder.in_width):
            raise ValueError(
                f"the adversary makes {adversary.out_width} values of {adversary.in_width};"
                f" {encoder.in_width} of {encoder.out_width} is right"
            )
        if not 0 <= weight < math.inf:
            raise ValueError(f"weight {weight} of the adversary: 0 or more is right")
        self.contrastive, self.encoder, self.adversary, self.weight = contrastive, encoder, adversary, weight
        self.size = contrastive.size + adversary.size

    @property
    def nets(self) -> dict[str, Net]:
        return {**self.contrastive.nets, "adversary": self.adversary}

    def init(self, generator: torch.Generator) -> Tensor:
        return torch.cat([self.contrastive.init(generator), self.adversary.init(generator)])

    def encode(self, flat: Tensor, x: Tensor) -> Tensor:
        return encoded(self.encoder, flat, x)

    def learn(
        self,
        flat: Tensor,
        x: Tensor,
        gradient: Tensor,
        *,
        target: Tensor | None = None,
        counted: Tensor | None = None,
        to_input: bool = False,
    ) -> Learned:
        """`x` holds two views of each row of `target`, (stack, batch, width), which the adversary is after."""
        if target is None:
            raise ValueError("an adversary needs the rows that are encoded beside their altered copies")
        views, ends = x.shape[1], (self.encoder.size, self.contrastive.size)
        (own, after, against), (into_own, into_after, into_against) = (
            one.tensor_split(ends, 1) for one in (flat, gradient)
        )
        tape = self.encoder.forward(own, torch.cat([x, target], 1))
        code = tape[-1].detach()
        judge = partial(nt_xent, temperature=self.contrastive.temperature)
        loss, dviews = judged(self.contrastive.projector, after, code[:, :views], into_after, judge)
        error, drows = judged(
            self.adversary, against, code[:, views:], into_against, lambda made: squared_error(made, target)
        )
        variance = target.var(1, correction=0).mean(1).clamp_(min=_LEAST_VARIANCE)
        push = torch.where(error < variance, self.weight / variance, 0.0)
        dcode = torch.cat([dviews, drows * -push[:, None, None]], 1)
        dx = self.encoder.backward(own, tape, dcode, into_own, to_input=to_input)
        whole = loss - self.weight * (error / variance).clamp_(max=1.0)
        return Learned(code[:, :views], whole, None if dx is None else dx[:, :views])
