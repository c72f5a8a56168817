"""What a party learns from: label-free objectives for guests and hosts, supervised ones for the owner."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from dvfl.parties.networks.modules import Net
from dvfl.parties.numerics.operations import averaged_cross_entropy, smoothed_cross_entropy, squared_error

ObjectiveName = Literal["reconstruction", "simclr"]  # what a guest or a host may learn by


class Learned(NamedTuple):
    """What one evaluation of an objective gives; the gradient of the parameters is written where it was asked."""

    code: Tensor  # (stack, batch, latent): the encoding of the input before the update
    loss: Tensor  # (stack,)
    dx: Tensor | None  # gradient of the input, where asked for


class Objective(Protocol):
    """A label-free objective over stacked parameters `flat` (stack, size)."""

    @property
    def encoder(self) -> Net: ...
    @property
    def nets(self) -> dict[str, Net]:
        """By name, in the order of the parameters; the encoder is the first."""

    @property
    def size(self) -> int: ...
    @property
    def copies(self) -> int:
        """How many copies of a batch it learns from at once, altered apart from each other; they lie one after the
        other in its input. 1: the batch itself, or what is seen of it."""

    def init(self, generator: torch.Generator) -> Tensor: ...
    def encode(self, flat: Tensor, x: Tensor) -> Tensor: ...
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
        """Evaluates and differentiates; `target` (the input itself without it) counts where `counted` is true."""


class Reconstruction:
    """Mean squared error between a target and what a decoder makes of the encoding (the paper's objective)."""

    copies = 1

    def __init__(self, encoder: Net, decoder: Net) -> None:
        if encoder.out_width != decoder.in_width:
            raise ValueError(f"the decoder reads {decoder.in_width} values, the encoder gives {encoder.out_width}")
        self.encoder, self.decoder = encoder, decoder
        self.size = encoder.size + decoder.size

    @property
    def nets(self) -> dict[str, Net]:
        return {"encoder": self.encoder, "decoder": self.decoder}

    def init(self, generator: torch.Generator) -> Tensor:
        return torch.cat([self.encoder.init(generator), self.decoder.init(generator)])

    def encode(self, flat: Tensor, x: Tensor) -> Tensor:
        return encoded(self.encoder, flat, x)

    def reconstruct(self, flat: Tensor, x: Tensor) -> Tensor:
        """What the decoder makes of the encoding of `x`."""
        return self.decoder.forward(flat[:, self.encoder.size :], self.encode(flat, x))[-1].detach()

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
        aim = x if target is None else target

        def against_aim(made: Tensor) -> tuple[Tensor, Tensor]:
            if counted is None:
                return squared_error(made, aim)
            error = made - aim
            error.masked_fill_(~counted, 0)  # not a product: what is not counted may be no number
            share = 1 / counted.sum((1, 2)).clamp_(min=1)
            loss = error.square().sum((1, 2)) * share
            return loss, error.mul_(2 * share[:, None, None])

        return learned(self.encoder, self.decoder, flat, x, gradient, against_aim, to_input=to_input)


def encoded(encoder: Net, flat: Tensor, x: Tensor) -> Tensor:
    """What an encoder whose parameters are the first of `flat` makes of `x`."""
    return encoder.forward(flat[:, : encoder.size], x)[-1].detach()


def learned(
    encoder: Net,
    after: Net,
    flat: Tensor,
    x: Tensor,
    gradient: Tensor,
    judge: Callable[[Tensor], tuple[Tensor, Tensor]],
    *,
    to_input: bool,
) -> Learned:
    """An encoder and a network after it, forward and back; `judge` gives the loss of their output and its gradient."""
    cut = encoder.size
    tape = encoder.forward(flat[:, :cut], x)
    code = tape[-1].detach()
    loss, dz = judged(after, flat[:, cut:], code, gradient[:, cut:], judge)
    dx = encoder.backward(flat[:, :cut], tape, dz, gradient[:, :cut], to_input=to_input)
    return Learned(code, loss, dx)


def judged(
    net: Net, flat: Tensor, code: Tensor, gradient: Tensor, judge: Callable[[Tensor], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """What `judge` says of what a network makes of encodings, and its gradient at them."""
    tape = net.forward(flat, code)
    loss, dy = judge(tape[-1].detach())
    dz = net.backward(flat, tape, dy, gradient, to_input=True)
    assert dz is not None
    return loss, dz


def temperature_of(objective: ObjectiveName, temperature: float) -> float | None:
    """The temperature of an objective that has one."""
    return temperature if objective == "simclr" else None


class Supervision(Protocol):
    """The owner's objective: a head's output against labels."""

    @property
    def head(self) -> Net: ...
    def learn(self, flat: Tensor, x: Tensor, y: Tensor, gradient: Tensor, *, to_input: bool = False) -> Learned: ...
    def score(self, output: Tensor, y: Tensor) -> Tensor:
        """How good outputs are, the higher the better, of each stack element: (stack,)."""

    def guess(self, y: Tensor) -> Tensor:
        """The score of the best constant output for labels (stack, rows): (stack,)."""


class CrossEntropy:
    """Classification: softmax is implicit in the loss. Labels are class numbers, (stack, batch).

    In training a row may have several, (stack, batch, some), whose mean is its label.
    """

    def __init__(self, head: Net, smoothing: float = 0.0) -> None:
        self.head, self._smoothing = head, smoothing

    def learn(self, flat: Tensor, x: Tensor, y: Tensor, gradient: Tensor, *, to_input: bool = False) -> Learned:
        tape = self.head.forward(flat, x)
        judge = smoothed_cross_entropy if y.dim() == 2 else averaged_cross_entropy
        loss, dy = judge(tape[-1].detach(), y, self._smoothing)
        dx = self.head.backward(flat, tape, dy, gradient, to_input=to_input)
        return Learned(tape[-1].detach(), loss, dx)

    def score(self, output: Tensor, y: Tensor) -> Tensor:
        return (output.argmax(-1) == y).float().mean(1)

    def guess(self, y: Tensor) -> Tensor:
        return torch.stack([own.bincount().max() / len(own) for own in y])


class SquaredError:
    """Regression: mean squared error of one output. Labels are numbers, (stack, batch)."""

    def __init__(self, head: Net) -> None:
        self.head = head

    def learn(self, flat: Tensor, x: Tensor, y: Tensor, gradient: Tensor, *, to_input: bool = False) -> Learned:
        tape = self.head.forward(flat, x)
        loss, dy = squared_error(tape[-1].detach(), y[..., None])
        dx = self.head.backward(flat, tape, dy, gradient, to_input=to_input)
        return Learned(tape[-1].detach(), loss, dx)

    def score(self, output: Tensor, y: Tensor) -> Tensor:
        return -(output - y[..., None]).square().mean((1, 2))

    def guess(self, y: Tensor) -> Tensor:
        return -y.var(1, correction=0)
