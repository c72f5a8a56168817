"""The written-out backward pass, the flat layout and the first draw of stacked perceptrons."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dvfl.parties.networks.mlp import ALIGNMENT, Mlp
from dvfl.parties.numerics.operations import SLOPE, Activation

ACTIVATIONS: dict[Activation, nn.Module] = {
    "identity": nn.Identity(),
    "relu": nn.ReLU(),
    "leaky_relu": nn.LeakyReLU(SLOPE),
    "sigmoid": nn.Sigmoid(),
}


@st.composite
def nets(draw: st.DrawFn) -> Mlp:
    widths = draw(st.lists(st.integers(1, 40), min_size=2, max_size=5))
    names = draw(st.lists(st.sampled_from(sorted(ACTIVATIONS)), min_size=len(widths) - 1, max_size=len(widths) - 1))
    return Mlp(tuple(widths), tuple(names))


def drawn(net: Mlp, stack: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([net.init(generator) for _ in range(stack)]).double()


def by_autograd(net: Mlp, flat: Tensor, x: Tensor) -> Tensor:
    tensors = net.named(flat)
    for number, name in enumerate(net.activations):
        linear = x @ tensors[f"{number}.weight"].transpose(1, 2) + tensors[f"{number}.bias"][:, None]
        x = ACTIVATIONS[name](linear)
    return x


def padding(net: Mlp) -> Tensor:
    covered = torch.zeros(net.size)
    for view in net.named(covered).values():
        view.fill_(1)
    return covered == 0


def close(ours: Tensor, theirs: Tensor) -> bool:
    return bool((ours - theirs).norm() <= 1e-5 * theirs.norm() + 1e-12)


@settings(deadline=None, max_examples=60)
@given(nets(), st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32))
def test_forward_and_backward_equal_autograd(net: Mlp, stack: int, batch: int, seed: int) -> None:
    flat = drawn(net, stack, seed)
    x = torch.randn(stack, batch, net.in_width, dtype=torch.float64)
    dy = torch.randn(stack, batch, net.out_width, dtype=torch.float64)
    leaf, entry = flat.clone().requires_grad_(), x.clone().requires_grad_()
    expected = by_autograd(net, leaf, entry)
    into_flat, into_entry = torch.autograd.grad(expected, (leaf, entry), dy)

    gradient = torch.zeros_like(flat)
    tape = net.forward(flat, x)
    dx = net.backward(flat, tape, dy, gradient, to_input=True)

    assert close(tape[-1], expected.detach())
    assert close(gradient, into_flat)
    assert dx is not None
    assert close(dx, into_entry)


@settings(deadline=None, max_examples=30)
@given(nets(), st.integers(1, 3), st.integers(0, 2**32))
def test_the_gradient_of_the_padding_is_never_written(net: Mlp, stack: int, seed: int) -> None:
    flat = drawn(net, stack, seed)
    gradient = torch.full_like(flat, 7)
    tape = net.forward(flat, torch.randn(stack, 5, net.in_width, dtype=torch.float64))
    assert net.backward(flat, tape, torch.ones_like(tape[-1]), gradient, to_input=False) is None
    assert (gradient[:, padding(net)] == 7).all()


def test_rows_of_a_larger_matrix_are_read_and_written_in_place() -> None:
    net = Mlp((5, 4, 3), ("relu", "identity"))
    wide = torch.randn(2, net.size + 48)
    gradient = torch.zeros_like(wide)
    x = torch.randn(2, 6, 5)
    tape = net.forward(wide[:, 16:-32], x)
    net.backward(wide[:, 16:-32], tape, torch.ones_like(tape[-1]), gradient[:, 16:-32], to_input=False)

    apart = wide[:, 16:-32].contiguous()
    expected = torch.zeros_like(apart)
    net.backward(apart, net.forward(apart, x), torch.ones_like(tape[-1]), expected, to_input=False)
    assert torch.equal(gradient[:, 16:-32], expected)
    assert not gradient[:, :16].any()
    assert not gradient[:, -32:].any()


def test_a_forward_pass_leaves_its_input_alone() -> None:
    net = Mlp((4, 4), ("relu",))
    x = torch.randn(1, 3, 4)
    before = x.clone()
    net.forward(drawn(net, 1, 0).float(), x)
    assert torch.equal(x, before)


def test_named_tensors_are_views_of_the_flat_vector() -> None:
    net = Mlp((3, 5, 2), ("relu", "identity"))
    flat = torch.zeros(2, net.size)
    net.named(flat)["1.weight"][1, 0, 4] = 3.0
    net.named(flat)["0.bias"][0] += 1.0
    assert net.named(flat)["1.weight"].shape == (2, 2, 5)
    assert flat[1].sum() == 3.0
    assert flat[0].sum() == 5.0


@given(nets())
def test_every_tensor_starts_on_the_alignment(net: Mlp) -> None:
    flat = torch.zeros(net.size)
    offsets = [view.storage_offset() for view in net.named(flat).values()]
    assert all(offset % ALIGNMENT == 0 for offset in [*offsets, net.size])


def test_named_tensors_load_into_linear_layers() -> None:
    net = Mlp((3, 5, 2), ("relu", "identity"))
    flat = drawn(net, 1, 3).float()
    layers = nn.ModuleList([nn.Linear(3, 5), nn.Linear(5, 2)])
    layers.load_state_dict({name: view[0] for name, view in net.named(flat).items()})
    x = torch.randn(4, 3)
    torch.testing.assert_close(layers[1](layers[0](x).relu()).detach(), net.forward(flat, x[None])[-1][0])


@given(nets(), st.integers(0, 2**32))
def test_the_first_draw_depends_on_the_generator_alone(net: Mlp, seed: int) -> None:
    first = net.init(torch.Generator().manual_seed(seed))
    torch.rand(3)
    assert torch.equal(first, net.init(torch.Generator().manual_seed(seed)))
    assert not first[padding(net)].any()


def test_the_first_draw_has_the_distribution_of_linear_layers() -> None:
    net = Mlp((196, 400, 80), ("leaky_relu", "relu"))
    tensors = net.named(net.init(torch.Generator().manual_seed(0)))
    for number, inputs in enumerate(net.widths[:-1]):
        bound = 1 / math.sqrt(inputs)
        theirs = nn.Linear(inputs, net.widths[number + 1])
        for name in ("weight", "bias"):
            ours = tensors[f"{number}.{name}"]
            assert bound * 0.95 < ours.abs().max() <= bound
            assert getattr(theirs, name).abs().max() <= bound  # what we say of PyTorch's own
            assert abs(ours.mean()) < 5 * bound / math.sqrt(3 * ours.numel())
        assert tensors[f"{number}.weight"].std() == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize(("widths", "names"), [((3, 2), ()), ((3, 2), ("relu", "relu")), ((3, 0, 2), ("relu",) * 2)])
def test_widths_and_activations_that_do_not_fit_are_refused(widths: tuple[int, ...], names: tuple) -> None:
    with pytest.raises(ValueError, match="one activation a layer"):
        Mlp(widths, names)
