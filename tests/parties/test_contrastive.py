"""SimCLR's loss and its gradients against autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.modules import ModuleNet, Net
from dvfl.parties.networks.projector import Projector
from dvfl.parties.objectives.contrastive import Contrastive, nt_xent


def expected_loss(z: Tensor, temperature: float) -> Tensor:
    """As one would first write it: cross-entropy of similarities, the partner being the class. (stack,)"""
    h = functional.normalize(z, dim=2)
    own = torch.eye(z.shape[1], dtype=torch.bool, device=z.device)
    logits = (h @ h.transpose(1, 2) / temperature).masked_fill(own, -torch.inf)
    partner = torch.arange(z.shape[1]).roll(z.shape[1] // 2)
    return torch.stack([functional.cross_entropy(one, partner) for one in logits])


def projected(net: Projector, flat: Tensor, x: Tensor) -> Tensor:
    """The projector as autograd sees it: no operation in place."""
    tensors = net.named(flat)
    for number in range(len(net.widths) - 1):
        x = x @ tensors[f"{number}.weight"].transpose(1, 2)
        if f"{number}.bias" in tensors:
            return x + tensors[f"{number}.bias"][:, None]
        normal = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        x = torch.relu(normal * tensors[f"{number}.norm.weight"][:, None] + tensors[f"{number}.norm.bias"][:, None])
    raise AssertionError("the last layer has a bias")


def encoded(net: Net, flat: Tensor, x: Tensor) -> Tensor:
    if isinstance(net, ModuleNet):
        calls = [torch.func.functional_call(net.module, net.named(f), (r,)) for f, r in zip(flat, x, strict=True)]
        return torch.stack(calls)
    tensors = net.named(flat)
    x = functional.leaky_relu(x @ tensors["0.weight"].transpose(1, 2) + tensors["0.bias"][:, None], 0.01)
    return torch.relu(x @ tensors["1.weight"].transpose(1, 2) + tensors["1.bias"][:, None])


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(1, 6), st.floats(0.05, 5.0), st.integers(0, 999))
def test_nt_xent_equals_autograd(stack: int, batch: int, width: int, temperature: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(stack, 2 * batch, width, dtype=torch.float64, generator=generator)
    leaf = z.clone().requires_grad_()
    expected = expected_loss(leaf, temperature)
    (into,) = torch.autograd.grad(expected.sum(), leaf)
    loss, dz = nt_xent(z, temperature)
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(dz, into, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_single_precision_is_enough_for_views_that_agree_and_for_opposite_ones(temperature: float) -> None:
    same = torch.ones(1, 8, 4)
    opposite = torch.cat([same, -same], 1)
    for z in (same, opposite, torch.zeros(1, 8, 4)):
        loss, dz = nt_xent(z, temperature)
        torch.testing.assert_close(loss, expected_loss(z, temperature), rtol=1e-4, atol=1e-4)
        assert dz.isfinite().all()


MODULE = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
ENCODERS = {"mlp": lambda: Mlp((6, 5, 3), ("leaky_relu", "relu")), "module": lambda: ModuleNet(MODULE.double(), 6)}


def objective(kind: str = "mlp") -> Contrastive:
    encoder = ENCODERS[kind]()
    if isinstance(encoder, ModuleNet):
        encoder.module.double()
    return Contrastive(encoder, Projector((3, 5, 5, 4)), 0.3)


@pytest.mark.parametrize("kind", ENCODERS)
@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3), st.integers(2, 6), st.booleans(), st.integers(0, 999))
def test_learning_equals_autograd(kind: str, stack: int, batch: int, to_input: bool, seed: int) -> None:
    ours, generator = objective(kind), torch.Generator().manual_seed(seed)
    flat = torch.stack([ours.init(generator) for _ in range(stack)]).double()
    x = torch.randn(stack, 2 * batch, 6, dtype=torch.float64, generator=generator)
    leaf, entry = flat.clone().requires_grad_(), x.clone().requires_grad_()
    cut = ours.encoder.size
    code = encoded(ours.encoder, leaf[:, :cut], entry)
    assert isinstance(ours.projector, Projector)
    expected = expected_loss(projected(ours.projector, leaf[:, cut:], code), 0.3)
    into_flat, into_entry = torch.autograd.grad(expected.sum(), (leaf, entry))

    gradient = torch.zeros_like(flat)
    with torch.no_grad():
        learned = ours.learn(flat, x, gradient, to_input=to_input)
    torch.testing.assert_close(learned.code, code.detach())
    torch.testing.assert_close(learned.loss, expected.detach())
    torch.testing.assert_close(gradient, into_flat, rtol=1e-6, atol=1e-9)
    assert (learned.dx is not None) == to_input
    if learned.dx is not None:
        torch.testing.assert_close(learned.dx, into_entry, rtol=1e-6, atol=1e-9)


def test_nothing_is_read_back_from_the_device() -> None:
    """A captured round cannot wait for a value; tensors without values show that none is asked for."""
    ours = objective()
    flat = torch.empty(2, ours.size, device="meta")
    learned = ours.learn(flat, torch.empty(2, 8, 6, device="meta"), torch.empty_like(flat), to_input=True)
    assert learned.loss.shape == (2,)


def test_a_projector_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="the projector reads 4 values, the encoder gives 3"):
        Contrastive(Mlp((6, 3), ("relu",)), Projector((4, 2)), 0.5)


@pytest.mark.parametrize("temperature", [0.0, 0.01, -1.0, torch.inf, torch.nan])
def test_a_temperature_that_cannot_be_computed_with_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match=r"0\.05 or more is right"):
        Contrastive(Mlp((6, 3), ("relu",)), Projector((3, 2)), temperature)
