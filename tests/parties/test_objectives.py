"""Losses and their gradients against autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.modules import ModuleNet, Net
from dvfl.parties.objectives.objective import CrossEntropy, Reconstruction, SquaredError

MODULE = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


def parameters(init: list[Tensor], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.stack(init).to(dtype)


def chained(net: Mlp, flat: Tensor, x: Tensor) -> Tensor:
    """The network as autograd sees it: no operation in place."""
    kinds = {"identity": nn.Identity(), "relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU(0.01), "sigmoid": nn.Sigmoid()}
    tensors = net.named(flat)
    for number, name in enumerate(net.activations):
        x = kinds[name](x @ tensors[f"{number}.weight"].transpose(1, 2) + tensors[f"{number}.bias"][:, None])
    return x


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 3),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 999),
)
def test_reconstruction_equals_autograd(
    stack: int, batch: int, targeted: bool, masked: bool, to_input: bool, unit: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    encoder = Mlp((6, 5, 3), ("leaky_relu", "relu"))
    objective = Reconstruction(encoder, Mlp((3, 5, 6), ("leaky_relu", "sigmoid" if unit else "identity")))
    flat = parameters([objective.init(generator) for _ in range(stack)])
    x, goal = (torch.randn(stack, batch, 6, dtype=torch.float64, generator=generator) for _ in range(2))
    target = goal if targeted else None
    counted = torch.rand(stack, batch, 6, generator=generator) < 0.6 if masked else None

    leaf, entry = flat.clone().requires_grad_(), x.clone().requires_grad_()
    code = chained(encoder, leaf[:, : encoder.size], entry)
    error = chained(objective.decoder, leaf[:, encoder.size :], code) - (goal if targeted else x)  # type: ignore[arg-type]
    weight = torch.ones_like(error) if counted is None else counted.double()
    expected = (error.square() * weight).sum((1, 2)) / weight.sum((1, 2)).clamp(min=1)
    into_flat, into_entry = torch.autograd.grad(expected.sum(), (leaf, entry))

    gradient = torch.zeros_like(flat)
    learned = objective.learn(flat, x, gradient, target=target, counted=counted, to_input=to_input)
    torch.testing.assert_close(learned.code, code.detach())
    torch.testing.assert_close(learned.loss, expected.detach())
    torch.testing.assert_close(gradient, into_flat)
    if to_input:
        torch.testing.assert_close(learned.dx, into_entry)
    else:
        assert learned.dx is None


def test_what_is_not_counted_may_be_anything_at_all() -> None:
    objective = Reconstruction(Mlp((2, 2), ("relu",)), Mlp((2, 2), ("identity",)))
    flat = objective.init(torch.Generator().manual_seed(0))[None]
    target = torch.tensor([[[1.0, torch.nan], [torch.inf, 2.0]]])
    gradient = torch.zeros_like(flat)
    learned = objective.learn(flat, torch.ones(1, 2, 2), gradient, target=target, counted=target.isfinite())
    assert learned.loss.isfinite().all()
    assert gradient.isfinite().all()


def test_nothing_counted_means_no_loss_and_no_gradient() -> None:
    objective = Reconstruction(Mlp((2, 2), ("relu",)), Mlp((2, 2), ("identity",)))
    flat = objective.init(torch.Generator().manual_seed(0))[None]
    gradient = torch.ones_like(flat)
    learned = objective.learn(flat, torch.randn(1, 4, 2), gradient, counted=torch.zeros(1, 4, 2, dtype=torch.bool))
    assert learned.loss.tolist() == [0.0]
    cut = objective.encoder.size
    views = [*objective.encoder.named(gradient[:, :cut]).values(), *objective.decoder.named(gradient[:, cut:]).values()]
    assert not any(view.any() for view in views)


def test_an_encoder_that_is_a_users_module_learns_like_autograd() -> None:
    encoder, decoder = ModuleNet(MODULE, 6), Mlp((3, 6), ("identity",))
    objective = Reconstruction(encoder, decoder)
    flat = parameters([objective.init(torch.Generator().manual_seed(seed)) for seed in range(2)], torch.float32)
    x = torch.randn(2, 5, 6)
    leaf = flat.clone().requires_grad_()
    codes = [torch.func.functional_call(MODULE, encoder.named(leaf[i, : encoder.size]), (x[i],)) for i in range(2)]
    loss = (chained(decoder, leaf[:, encoder.size :], torch.stack(codes)) - x).square().mean((1, 2))
    (into_flat,) = torch.autograd.grad(loss.sum(), leaf)

    gradient = torch.zeros_like(flat)
    with torch.no_grad():
        learned = objective.learn(flat, x, gradient)
    torch.testing.assert_close(learned.loss, loss.detach())
    torch.testing.assert_close(gradient, into_flat, rtol=1e-4, atol=1e-6)
    assert not learned.code.requires_grad


def test_a_decoder_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="the decoder reads 4 values, the encoder gives 3"):
        Reconstruction(Mlp((6, 3), ("relu",)), Mlp((4, 6), ("relu",)))


def test_reconstruct_is_the_decoding_of_the_encoding() -> None:
    objective = Reconstruction(Mlp((6, 3), ("relu",)), Mlp((3, 6), ("sigmoid",)))
    flat, x = objective.init(torch.Generator().manual_seed(0))[None], torch.randn(1, 4, 6)
    decoded = objective.decoder.forward(flat[:, objective.encoder.size :], objective.encode(flat, x))[-1]
    assert torch.equal(objective.reconstruct(flat, x), decoded)


def supervised(head: Net, stack: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    flat = parameters([head.init(generator) for _ in range(stack)])
    return flat, torch.randn(stack, 7, head.in_width, dtype=torch.float64, generator=generator)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4), st.integers(2, 6), st.sampled_from([0.0, 0.1, 0.9]), st.booleans(), st.integers(0, 999))
def test_cross_entropy_equals_autograd(stack: int, classes: int, smoothing: float, to_input: bool, seed: int) -> None:
    head = Mlp((5, 4, classes), ("leaky_relu", "identity"))
    flat, x = supervised(head, stack, seed)
    y = torch.randint(classes, (stack, 7))
    leaf, entry = flat.clone().requires_grad_(), x.clone().requires_grad_()
    output = chained(head, leaf, entry)
    expected = torch.stack([functional.cross_entropy(output[i], y[i], label_smoothing=smoothing) for i in range(stack)])
    into_flat, into_entry = torch.autograd.grad(expected.sum(), (leaf, entry))

    objective, gradient = CrossEntropy(head, smoothing), torch.zeros_like(flat)
    learned = objective.learn(flat, x, y, gradient, to_input=to_input)
    torch.testing.assert_close(learned.code, output.detach())
    torch.testing.assert_close(learned.loss, expected.detach())
    torch.testing.assert_close(gradient, into_flat)
    assert (learned.dx is not None) == to_input
    if learned.dx is not None:
        torch.testing.assert_close(learned.dx, into_entry)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3), st.integers(2, 6), st.integers(1, 4), st.sampled_from([0.0, 0.1]), st.integers(0, 999))
def test_averaged_labels_are_the_cross_entropy_of_their_mean(
    stack: int, classes: int, several: int, smoothing: float, seed: int
) -> None:
    head = Mlp((5, 4, classes), ("leaky_relu", "identity"))
    flat, x = supervised(head, stack, seed)
    y = torch.randint(classes, (stack, 7, several))
    mean = functional.one_hot(y, classes).double().mean(2)
    leaf = flat.clone().requires_grad_()
    output = chained(head, leaf, x)
    expected = torch.stack(
        [functional.cross_entropy(output[i], mean[i], label_smoothing=smoothing) for i in range(stack)]
    )
    (into_flat,) = torch.autograd.grad(expected.sum(), (leaf,))

    gradient = torch.zeros_like(flat)
    learned = CrossEntropy(head, smoothing).learn(flat, x, y, gradient)
    torch.testing.assert_close(learned.loss, expected.detach())
    torch.testing.assert_close(gradient, into_flat)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4), st.booleans(), st.integers(0, 999))
def test_squared_error_equals_autograd(stack: int, to_input: bool, seed: int) -> None:
    head = Mlp((5, 4, 1), ("leaky_relu", "identity"))
    flat, x = supervised(head, stack, seed)
    y = torch.randn(stack, 7, dtype=torch.float64)
    leaf, entry = flat.clone().requires_grad_(), x.clone().requires_grad_()
    output = chained(head, leaf, entry)
    expected = (output[..., 0] - y).square().mean(1)
    into_flat, into_entry = torch.autograd.grad(expected.sum(), (leaf, entry))

    objective, gradient = SquaredError(head), torch.zeros_like(flat)
    learned = objective.learn(flat, x, y, gradient, to_input=to_input)
    torch.testing.assert_close(learned.loss, expected.detach())
    torch.testing.assert_close(gradient, into_flat)
    assert (learned.dx is not None) == to_input
    if learned.dx is not None:
        torch.testing.assert_close(learned.dx, into_entry)


def test_the_score_of_a_classification_is_the_share_that_is_right() -> None:
    output = torch.tensor([[[2.0, 1.0], [0.0, 3.0]], [[2.0, 1.0], [0.0, 3.0]]])
    score = CrossEntropy(Mlp((1, 2), ("identity",))).score(output, torch.tensor([[0, 1], [1, 1]]))
    assert score.tolist() == [1.0, 0.5]


def test_the_score_of_a_regression_is_the_higher_the_smaller_the_error() -> None:
    output = torch.tensor([[[2.0], [0.0]], [[2.0], [1.0]]])
    score = SquaredError(Mlp((1, 1), ("identity",))).score(output, torch.tensor([[2.0, 0.0], [1.0, 3.0]]))
    assert score.tolist() == [0.0, -2.5]


def test_the_best_constant_output_of_a_classification_is_the_most_frequent_class() -> None:
    guess = CrossEntropy(Mlp((1, 2), ("identity",))).guess(torch.tensor([[0, 2, 2, 1], [1, 1, 1, 0]]))
    assert guess.tolist() == [0.5, 0.75]


def test_the_best_constant_output_of_a_regression_is_the_mean() -> None:
    y = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
    supervision = SquaredError(Mlp((1, 1), ("identity",)))
    assert supervision.guess(y).tolist() == supervision.score(y.mean(1)[:, None, None].expand(2, 2, 1), y).tolist()
