"""An encoder that learned its training rows under differential privacy: an autoencoder trained by opacus' DP-SGD."""

import secrets
import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from dvfl.errors import UserError
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.sizes import decoder, encoder, sizes
from dvfl.parties.numerics.operations import Activation
from dvfl.parties.numerics.randomness import torch_generator
from dvfl.parties.objectives.objective import encoded
from dvfl.release.accounting import epsilon_of_training, needs_opacus, noise_for_training, usual_delta
from dvfl.simulation.cpu_threads import threads
from dvfl.strategies.plain_loops import sequential

Layers = tuple[tuple[int, ...], tuple[Activation, ...]]  # widths and activations of an encoder


class DpAutoencoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A guest's encoder for `encoders=[..]`; its training rows have (`epsilon_`, `delta_`) differential privacy.

    What is protected is the encoder: whoever comes to know it, or what it makes of other rows, learns little of any one
    row that it was trained on (there or not there). The encoding of a row itself is NOT protected: it tells of that row
    as any encoder's does. For that there are `clip` and `noise` of the settings.

    In each step a row takes part by chance (Poisson sampling), its gradient is scaled down to `bound`, and Gaussian
    noise is added to their sum, as much as `epsilon` needs by the accountant.
    """

    def __init__(
        self,
        *,
        epsilon: float = 8.0,
        delta: float | None = None,  # None: rows ** -1.1
        latent: int | None = None,  # width of an encoding; None: the sizing rule's for tables, as with `hidden`
        hidden: int | None = None,
        unit: bool = False,  # values lie in [0, 1], which must be known without a look at them
        steps: int = 1000,
        batch: int = 256,  # rows that take part in a step, on average; at most a quarter of all
        rate: float = 5e-3,  # of Adam
        bound: float = 0.1,  # the longest gradient of one row
        seed: int | None = None,  # of its own for each guest; None: drawn where nobody can guess it
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.latent = latent
        self.hidden = hidden
        self.unit = unit
        self.steps = steps
        self.batch = batch
        self.rate = rate
        self.bound = bound
        self.seed = seed

    def fit(self, x: NDArray[np.float32], y: Any = None) -> Self:
        """Learns to encode rows. Rows and columns are counted, which nobody is protected from."""
        self._check()
        needs_opacus()
        table = torch.from_numpy(np.asarray(x, np.float32))
        rows, columns = table.shape
        widths = sizes("table", [columns], self.latent, hidden=self.hidden)
        net = encoder(columns, widths.guest_hidden[0], widths.guest_latent[0], widths.guest_activations)
        back = decoder(net, "sigmoid" if self.unit else "identity")
        seed = secrets.randbits(63) if self.seed is None else self.seed  # not kept: it gives the noise away
        start = torch_generator(seed, "dp autoencoder")
        module = nn.Sequential(*(sequential(part, part.init(start)) for part in (net, back)))
        sample_rate = min(self.batch / rows, 0.25)
        self.delta_ = usual_delta(rows) if self.delta is None else float(self.delta)
        self.noise_ = noise_for_training(self.epsilon, sample_rate, self.steps, self.delta_)
        self.epsilon_ = epsilon_of_training(sample_rate, self.noise_, self.steps, self.delta_)
        self._train(module, table, sample_rate, seed)
        self.layers_, self.parameters_ = (net.widths, net.activations), _flat(net, module[0]).numpy()
        return self

    def transform(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Encodings (rows, latent)."""
        check_is_fitted(self)
        return encodings_of(self.layers_, self.parameters_, x)

    def _train(self, module: nn.Module, table: Tensor, sample_rate: float, seed: int) -> None:
        from opacus.grad_sample import GradSampleModuleFastGradientClipping
        from opacus.optimizers import DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

        sampling, noise = (torch_generator(seed, "dp autoencoder", what) for what in ("rows", "noise"))
        # Ghost clipping (Li et al., 2022): lengths of rows' gradients follow from what goes into layers and comes back;
        # no row's gradient is ever written out, and a second pass sums them, each scaled down.
        private = GradSampleModuleFastGradientClipping(module, max_grad_norm=self.bound, loss_reduction="sum")
        optimiser = DPOptimizerFastGradientClipping(
            torch.optim.Adam(private.parameters(), self.rate),
            noise_multiplier=self.noise_,
            max_grad_norm=self.bound,
            expected_batch_size=None,
            loss_reduction="sum",  # Adam does not mind the scale
            generator=noise,
        )
        # One thread: products are small, and a second one would wait for a core that somebody else may have. What is
        # warned of are hooks on inputs without gradients.
        with threads(1), warnings.catch_warnings(action="ignore"), torch.enable_grad():
            for _ in range(self.steps):
                x = table[torch.rand(len(table), generator=sampling) < sample_rate]
                optimiser.zero_grad()
                losses = (private(x) - x).square().mean(1)
                DPTensorFastGradientClipping(private, optimiser, losses, "sum").backward()
                optimiser.step()

    def _check(self) -> None:
        for name in ("steps", "batch", "latent", "hidden"):
            value = getattr(self, name)
            if value is None and name in ("latent", "hidden"):
                continue
            if not isinstance(value, Integral) or value < 1:
                raise UserError(f"{name} {value}: a whole number of at least 1 is right")
        for name in ("rate", "bound"):
            if not 0 < getattr(self, name) < np.inf:
                raise UserError(f"{name} {getattr(self, name)}: a number above 0 is right")


def encodings_of(layers: Layers, parameters: NDArray[np.float32], x: NDArray[np.float32]) -> NDArray[np.float32]:
    """What an encoder makes of rows: (rows, latent)."""
    table = torch.from_numpy(np.asarray(x, np.float32))
    codes = encoded(Mlp(*layers), torch.from_numpy(parameters)[None], table[None])[0]
    return np.asarray(codes.numpy())


def _flat(net: Mlp, module: nn.Module) -> Tensor:
    """A network's parameters as `Mlp` keeps them."""
    flat = torch.zeros(net.size)
    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    for number, part in enumerate(linear):
        tensors = net.named(flat)
        tensors[f"{number}.weight"].copy_(part.weight.detach())
        tensors[f"{number}.bias"].copy_(part.bias.detach())
    return flat
