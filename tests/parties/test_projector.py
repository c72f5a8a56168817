"""The projector against PyTorch's own layers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dvfl.parties.networks.mlp import ALIGNMENT
from dvfl.parties.networks.projector import Projector


def plain(net: Projector, flat: Tensor) -> nn.Sequential:
    """The same layers as modules, of one element of the stack."""
    layers: list[nn.Module] = []
    last = len(net.widths) - 2
    for number, (inputs, outputs) in enumerate(zip(net.widths, net.widths[1:], strict=False)):
        layers.append(nn.Linear(inputs, outputs, bias=number == last))
        if number < last:
            layers += [nn.BatchNorm1d(outputs, track_running_stats=False), nn.ReLU()]
    module = nn.Sequential(*layers).to(flat.dtype)
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), net.named(flat).values(), strict=True):
            parameter.copy_(value)
    return module


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 3),
    st.integers(2, 9),
    st.sampled_from([(4, 3), (4, 5, 3), (6, 5, 4, 3)]),
    st.booleans(),
    st.integers(0, 999),
)
def test_forward_and_backward_equal_autograds(
    stack: int, batch: int, widths: tuple[int, ...], to_input: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    net = Projector(widths)
    flat = torch.stack([net.init(generator) for _ in range(stack)]).double()
    flat += 0.1 * torch.randn(flat.shape, dtype=torch.float64, generator=generator)  # gains and shifts as if learned
    x, dy = (
        torch.randn(stack, batch, width, dtype=torch.float64, generator=generator) for width in (widths[0], widths[-1])
    )
    gradient = torch.zeros_like(flat)
    tape = net.forward(flat, x)
    dx = net.backward(flat, tape, dy.clone(), gradient, to_input=to_input)
    for element in range(stack):
        module, entry = plain(net, flat[element]), x[element].clone().requires_grad_()
        output = module(entry)
        torch.testing.assert_close(tape[-1][element], output.detach(), rtol=1e-9, atol=1e-9)
        output.backward(dy[element])
        for ours, theirs in zip(net.named(gradient[element]).values(), module.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs.grad, rtol=1e-7, atol=1e-9)
        if dx is not None:
            torch.testing.assert_close(dx[element], entry.grad, rtol=1e-7, atol=1e-9)
    assert (dx is not None) == to_input


def test_it_starts_as_pytorchs_layers_start() -> None:
    tensors = Projector((100, 50, 50)).named(Projector((100, 50, 50)).init(torch.Generator().manual_seed(0)))
    assert list(tensors) == ["0.weight", "0.norm.weight", "0.norm.bias", "1.weight", "1.bias"]
    assert torch.equal(tensors["0.norm.weight"], torch.ones(50))
    assert not tensors["0.norm.bias"].any()
    for name, bound in (("0.weight", 0.1), ("1.weight", 50**-0.5), ("1.bias", 50**-0.5)):
        assert 0.9 * bound < float(tensors[name].abs().max()) <= bound


@pytest.mark.parametrize("widths", [(3, 2), (80, 50, 50, 50)])
def test_every_tensor_starts_on_a_boundary(widths: tuple[int, ...]) -> None:
    net = Projector(widths)
    flat = torch.zeros(net.size)
    starts = [view.storage_offset() for view in net.named(flat).values()]
    assert all(start % ALIGNMENT == 0 for start in [*starts, net.size])
