"""A contrastive objective: an encoding should tell a row's two views from those of all other rows of the batch.

SimCLR: Chen, Kornblith, Norouzi and Hinton, "A simple framework for contrastive learning of visual representations"
(2020); the DVFL paper's appendix on time complexity trains guests with it.
"""

import math
from functools import partial

import torch
from torch import Tensor

from dvfl.parties.networks.modules import Net
from dvfl.parties.objectives.objective import Learned, encoded, learned

LEAST_TEMPERATURE = 0.05  # below it single precision no longer holds the exponentials


class Contrastive:
    """SimCLR's objective on what a projector makes of the encodings of two views.

    An input holds a batch twice, (stack, 2 x batch, width): rows i and batch + i are views of one row, altered apart.
    What they aim at is each other, so a target and which of its values count have no part in it.
    """

    copies = 2

    def __init__(self, encoder: Net, projector: Net, temperature: float) -> None:
        if encoder.out_width != projector.in_width:
            raise ValueError(f"the projector reads {projector.in_width} values, the encoder gives {encoder.out_width}")
        if not LEAST_TEMPERATURE <= temperature < math.inf:
            raise ValueError(f"temperature {temperature}: {LEAST_TEMPERATURE} or more is right")
        self.encoder, self.projector, self.temperature = encoder, projector, temperature
        self.size = encoder.size + projector.size

    @property
    def nets(self) -> dict[str, Net]:
        return {"encoder": self.encoder, "projector": self.projector}

    def init(self, generator: torch.Generator) -> Tensor:
        return torch.cat([self.encoder.init(generator), self.projector.init(generator)])

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
        judge = partial(nt_xent, temperature=self.temperature)
        return learned(self.encoder, self.projector, flat, x, gradient, judge, to_input=to_input)


def nt_xent(z: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The normalised, temperature-scaled cross-entropy of projections (stack, 2 x batch, width), and its gradient.

    With a = z / (|z| sqrt(temperature)) and E = exp(a a') without its diagonal, the loss of view i is the logarithm of
    E's row sum less a_i times its partner. E is symmetric, so one product with it is all that the gradient needs.
    """
    count = z.shape[1]
    root = math.sqrt(temperature)
    length = torch.linalg.vector_norm(z, dim=2, keepdim=True).clamp_(min=1e-12)
    a = z / (length * root)
    near = torch.bmm(a, a.transpose(1, 2)).exp_()  # no row maximum: the exponent is at most 1 / temperature
    near.diagonal(dim1=1, dim2=2).zero_()
    total = near.sum(2, keepdim=True)
    partner = a.roll(count // 2, 1)
    loss = (total.log() - (a * partner).sum(2, keepdim=True)).mean((1, 2))
    drawn, drawing = torch.bmm(near, torch.cat([a, a / total], 2)).chunk(2, 2)
    da = torch.addcdiv(drawing, drawn, total).sub_(partner, alpha=2).div_(count)
    along = (a * da).sum(2, keepdim=True)  # a change of length changes nothing
    dz = da.div_(root).addcmul_(a, along, value=-root).div_(length)
    return loss, dz
