"""DVFL as one would first write it: a loop over parties, one module and one optimiser each. Bench's yardstick.

Written fairly: fused optimisers, gradients set to None, no needless copies, encodings collected once for the owner.
"""

import torch
from torch import Tensor, nn

from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.numerics.learner import Adam, Rule
from dvfl.parties.numerics.operations import SLOPE, Activation
from dvfl.parties.objectives.objective import Reconstruction

_MODULES: dict[Activation, type[nn.Module]] = {"identity": nn.Identity, "relu": nn.ReLU, "sigmoid": nn.Sigmoid}


class PlainCoder:
    """One guest or one host: encoder, decoder, optimiser, starting from given parameters."""

    def __init__(self, objective: Reconstruction, flat: Tensor, rule: Rule) -> None:
        encoder, decoder = objective.encoder, objective.decoder
        assert isinstance(encoder, Mlp) and isinstance(decoder, Mlp)
        self.encoder = sequential(encoder, flat[: encoder.size])
        self.decoder = sequential(decoder, flat[encoder.size :])
        self.optimizer = optimizer([*self.encoder.parameters(), *self.decoder.parameters()], rule)

    def step(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """One update on (batch, width); the encoding and the loss."""
        code = self.encoder(x)
        loss = nn.functional.mse_loss(self.decoder(code), x)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return code.detach(), loss.detach()


class PlainOwner:
    """The owner's head and its optimiser."""

    def __init__(self, head: Mlp, flat: Tensor, rule: Rule) -> None:
        self.head = sequential(head, flat)
        self.optimizer = optimizer(list(self.head.parameters()), rule)

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """One update on encodings (batch, width) and class numbers; the loss."""
        loss = nn.functional.cross_entropy(self.head(x), y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def sequential(net: Mlp, flat: Tensor) -> nn.Sequential:
    """The same network as PyTorch modules, with the same parameters."""
    layers: list[nn.Module] = []
    tensors = net.named(flat)
    for number, (inputs, outputs) in enumerate(zip(net.widths, net.widths[1:], strict=False)):
        linear = nn.Linear(inputs, outputs, device=flat.device)
        with torch.no_grad():
            linear.weight.copy_(tensors[f"{number}.weight"])
            linear.bias.copy_(tensors[f"{number}.bias"])
        name = net.activations[number]
        layers += [linear, nn.LeakyReLU(SLOPE) if name == "leaky_relu" else _MODULES[name]()]
    return nn.Sequential(*layers)


def optimizer(parameters: list[nn.Parameter], rule: Rule) -> torch.optim.Optimizer:
    """PyTorch's own optimiser for a rule, fused."""
    if isinstance(rule, Adam):
        return torch.optim.Adam(
            parameters, rule.rate, (rule.beta1, rule.beta2), rule.eps, rule.weight_decay, fused=True
        )
    return torch.optim.SGD(parameters, rule.rate, rule.momentum, weight_decay=rule.weight_decay, fused=True)
