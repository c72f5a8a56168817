"""Polynomial networks: gradients, degrees, bounds, and the same network over a field."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dvfl.strategies.fedvs.lagrange import Code
from dvfl.strategies.fedvs.polynomials import PolynomialNet
from dvfl.strategies.fedvs.prime_field import Field
from dvfl.strategies.fedvs.quantisation import quantise

nets = st.builds(PolynomialNet, st.integers(1, 12), st.integers(1, 6), st.integers(0, 2))


def drawn(net: PolynomialNet, stack: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([net.init(generator) for _ in range(stack)]).double()


@settings(deadline=None)
@given(nets, st.integers(1, 3), st.integers(1, 5), st.integers(0, 2**32))
def test_forward_and_backward_equal_autograd(net: PolynomialNet, stack: int, batch: int, seed: int) -> None:
    flat = drawn(net, stack, seed)
    x, dy = (torch.randn(stack, batch, width, dtype=torch.float64) for width in (net.in_width, net.out_width))
    leaf, entry = flat.clone().requires_grad_(), x.clone().requires_grad_()
    tensors, expected = net.named(leaf), entry
    for number in range(max(1, net.squares)):
        expected = expected @ tensors[f"{number}.weight"].transpose(1, 2) + tensors[f"{number}.bias"][:, None]
        expected = expected**2 if net.squares else expected
    expected.backward(dy)
    tape, gradient = net.forward(flat, x), torch.zeros_like(flat)
    dx = net.backward(flat, tape, dy.clone(), gradient, to_input=True)
    torch.testing.assert_close(tape[-1], expected.detach())
    torch.testing.assert_close(gradient, leaf.grad)
    torch.testing.assert_close(dx, entry.grad)


@settings(deadline=None)
@given(nets, st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 4))
def test_over_a_field_it_is_the_network_of_the_rounded_numbers(
    net: PolynomialNet, seed: int, data_bits: int, weight_bits: int
) -> None:
    field, flat = Field(61), drawn(net, 1, seed)
    x = torch.randn(1, 3, net.in_width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    scale = net.scale(data_bits, weight_bits)
    results = net.evaluate(field, quantise(flat, scale, field), quantise(x, 2.0**data_bits, field))
    rounded = net.forward((flat * scale).round() / scale, (x * 2**data_bits).round() / 2**data_bits)[-1]
    _, places = net.places(data_bits, weight_bits)
    assert torch.equal(field.centred(results).double(), rounded * 2.0**places)


@pytest.mark.parametrize(("squares", "degree"), [(0, 2), (1, 4), (2, 10), (3, 22)])
def test_the_degree_counts_columns_and_weights(squares: int, degree: int) -> None:
    """From degree + 1 values the coded network is decoded; one less gives something else."""
    net, field = PolynomialNet(3, 2, squares), Field(61)
    assert net.degree == degree
    code = Code(field, degree + 1, 1, 1)
    x, w = field.uniform(torch.tensor([1, 2]), 6).view(2, 2, 3), field.uniform(torch.tensor([3, 4]), net.size)
    results = net.evaluate(field, code.encode(w[:1], w[1:]), code.encode(x[:1], x[1:]))
    plain = net.evaluate(field, w[:1], x[:1])
    for used, same in ((degree, True), (degree - 1, False)):
        decoded = field.matmul(code.decoding(range(used + 1), used)[None], results.flatten(1)[None])
        assert torch.equal(decoded.view(plain.shape), plain) == same


@settings(deadline=None)
@given(nets, st.integers(0, 2**32), st.floats(0.1, 5), st.floats(0.1, 5))
def test_no_output_is_larger_than_its_bound(net: PolynomialNet, seed: int, row: float, unit: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    flat, count = net.limited(100 * drawn(net, 1, seed), unit)
    assert count.item() > 0
    x = torch.randn(1, 20, net.in_width, generator=generator, dtype=torch.float64)
    x = torch.cat([x * row / x.norm(dim=2, keepdim=True), net.named(flat)["0.weight"]], 1)  # in line with a unit: worst
    x[:, 20:] *= row / x[:, 20:].norm(dim=2, keepdim=True).clamp(min=1e-9)
    largest = net.forward(flat, x)[-1].abs().max()
    assert largest <= net.largest((row**2 + 1) ** 0.5, unit) * (1 + 1e-9)


def test_only_units_that_are_too_long_are_shortened() -> None:
    net = PolynomialNet(2, 2, 1)
    flat = torch.zeros(1, net.size)
    tensors = net.named(flat)
    tensors["0.weight"][0] = torch.tensor([[3.0, 0.0], [0.1, 0.2]])
    tensors["0.bias"][0] = torch.tensor([4.0, 0.3])
    kept, count = net.limited(flat, 1.0)
    assert count.tolist() == [1]
    torch.testing.assert_close(net.named(kept)["0.weight"][0], torch.tensor([[0.6, 0.0], [0.1, 0.2]]))
    torch.testing.assert_close(net.named(kept)["0.bias"][0], torch.tensor([0.8, 0.3]))
