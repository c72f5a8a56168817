"""An objective against a decoder: gradients against autograd, and where the encoder is no longer pushed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from dvfl.parties.guest import Guest
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.projector import Projector
from dvfl.parties.numerics.learner import Adam
from dvfl.parties.objectives.adversary import Adversarial
from dvfl.parties.objectives.contrastive import Contrastive

ENCODER = Mlp((6, 5, 3), ("leaky_relu", "relu"))


def objective(weight: float, adversary: Projector | Mlp | None = None) -> Adversarial:
    contrastive = Contrastive(ENCODER, Projector((3, 5, 4)), 0.3)
    return Adversarial(contrastive, adversary or Projector((3, 7, 6)), weight)


def drawn(ours: Adversarial, stack: int, batch: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Parameters, views and rows in double precision."""
    generator = torch.Generator().manual_seed(seed)
    flat = torch.stack([ours.init(generator) for _ in range(stack)]).double()
    rows = torch.randn(stack, batch, 6, dtype=torch.float64, generator=generator)
    views = rows.repeat(1, 2, 1) + 0.3 * torch.randn(stack, 2 * batch, 6, dtype=torch.float64, generator=generator)
    return flat, views, rows


def explaining(ours: Adversarial, flat: Tensor, rows: Tensor) -> None:
    """Makes the adversary's last layer most of the best that there is, so that it does better than the mean."""
    against = flat[:, ours.contrastive.size :]
    hidden = ours.adversary.forward(against, ours.encode(flat, rows))[-2]
    best = 0.7 * fitted(hidden, rows)
    ours.adversary.named(against)["1.weight"].copy_(best[:, :-1].transpose(1, 2))
    ours.adversary.named(against)["1.bias"].copy_(best[:, -1])


def fitted(z: Tensor, x: Tensor) -> Tensor:
    """The best linear map, weights over a bias: (stack, seen + 1, columns)."""
    solution: Tensor = torch.linalg.lstsq(functional.pad(z, (0, 1), value=1.0), x, driver="gelsd").solution
    return solution


def encoded(flat: Tensor, x: Tensor) -> Tensor:
    """The encoder as autograd sees it: no operation in place."""
    tensors = ENCODER.named(flat)
    x = functional.leaky_relu(x @ tensors["0.weight"].transpose(1, 2) + tensors["0.bias"][:, None], 0.01)
    return torch.relu(x @ tensors["1.weight"].transpose(1, 2) + tensors["1.bias"][:, None])


def decoded(net: Projector, flat: Tensor, x: Tensor) -> Tensor:
    """The adversary as autograd sees it."""
    tensors = net.named(flat)
    x = x @ tensors["0.weight"].transpose(1, 2)
    x = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
    x = torch.relu(x * tensors["0.norm.weight"][:, None] + tensors["0.norm.bias"][:, None])
    return x @ tensors["1.weight"].transpose(1, 2) + tensors["1.bias"][:, None]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), st.integers(2, 8), st.floats(0.01, 10), st.booleans(), st.booleans(), st.integers(0, 999))
def test_the_decoder_learns_along_its_error_and_the_encoder_against_it(
    stack: int, batch: int, weight: float, good: bool, to_input: bool, seed: int
) -> None:
    ours = objective(weight)
    flat, views, rows = drawn(ours, stack, batch, seed)
    if good:
        explaining(ours, flat, rows)
    simclr, cut = ours.contrastive.size, ENCODER.size
    of_simclr = torch.zeros(stack, simclr, dtype=torch.float64)
    alone = ours.contrastive.learn(flat[:, :simclr], views, of_simclr, to_input=True)

    leaf = flat.clone().requires_grad_()
    assert isinstance(ours.adversary, Projector)
    made = decoded(ours.adversary, leaf[:, simclr:], encoded(leaf[:, :cut], rows))
    error = (made - rows).square().mean((1, 2))
    (into,) = torch.autograd.grad(error.sum(), leaf)
    variance = rows.var(1, correction=0).mean(1)
    share = (error / variance).detach()
    pushed = torch.where(share < 1, weight / variance, 0.0)[:, None]

    gradient = torch.zeros_like(flat)
    learned = ours.learn(flat, views, gradient, target=rows, to_input=to_input)
    close = {"rtol": 1e-6, "atol": 1e-9}
    torch.testing.assert_close(gradient[:, :cut], of_simclr[:, :cut] - pushed * into[:, :cut], **close)
    torch.testing.assert_close(gradient[:, cut:simclr], of_simclr[:, cut:], **close)
    torch.testing.assert_close(gradient[:, simclr:], into[:, simclr:], **close)
    torch.testing.assert_close(learned.loss, alone.loss - weight * share.clamp(max=1), **close)
    torch.testing.assert_close(learned.code, alone.code)
    assert (learned.dx is not None) == to_input
    if learned.dx is not None:
        torch.testing.assert_close(learned.dx, alone.dx, **close)  # rows are pushed at, views are not


@pytest.mark.parametrize(("offset", "pushed"), [(0.0, True), (100.0, False)])
def test_an_adversary_that_is_no_better_than_the_mean_does_not_push(offset: float, pushed: bool) -> None:
    ours = objective(2.0, Mlp((3, 6), ("identity",)))
    flat, views, rows = drawn(ours, 1, 8, 0)
    code = ours.encode(flat, rows)
    best = fitted(code, rows)
    tensors = ours.adversary.named(flat[:, ours.contrastive.size :])
    tensors["0.weight"].copy_(best[:, :-1].transpose(1, 2))
    tensors["0.bias"].copy_(best[:, -1] + offset)  # 100: every guess beside the mark
    gradient, simclr = torch.zeros_like(flat), torch.zeros_like(flat)
    ours.learn(flat, views, gradient, target=rows)
    cut = ours.contrastive.size
    ours.contrastive.learn(flat[:, :cut], views, simclr[:, :cut])
    assert torch.allclose(gradient[:, :cut], simclr[:, :cut], atol=1e-12) != pushed
    if not pushed:
        assert gradient[:, cut:].any()  # it goes on learning itself


def test_without_weight_encoder_and_projector_learn_by_simclr_alone() -> None:
    ours = objective(0.0)
    flat, views, rows = drawn(ours, 2, 5, 3)
    gradient, cut = torch.zeros_like(flat), ours.contrastive.size
    learned = ours.learn(flat, views, gradient, target=rows)
    expected = torch.zeros_like(flat[:, :cut])
    alone = ours.contrastive.learn(flat[:, :cut], views, expected)
    torch.testing.assert_close(gradient[:, :cut], expected)
    torch.testing.assert_close(learned.loss, alone.loss)


def test_it_starts_where_simclr_starts() -> None:
    ours = objective(1.0)
    start, simclr = (one.init(torch.Generator().manual_seed(4)) for one in (ours, ours.contrastive))
    assert torch.equal(start[: len(simclr)], simclr)


def test_columns_that_never_vary_push_nobody() -> None:
    ours = objective(5.0)
    flat, _, _ = drawn(ours, 1, 4, 0)
    flat = flat.float()
    gradient = torch.zeros_like(flat)
    learned = ours.learn(flat, torch.ones(1, 8, 6), gradient, target=torch.ones(1, 4, 6))
    assert gradient.isfinite().all() and learned.loss.isfinite().all()


def test_neither_runs_away_from_the_other() -> None:
    """However heavy the adversary, a guest's encodings stay numbers, and its loss stays bounded."""
    ours = objective(100.0)
    generator = torch.Generator().manual_seed(0)
    guest = Guest(ours, ours.init(generator)[None], Adam(1e-2))
    x = torch.rand(1, 32, 6, generator=generator)
    for _ in range(300):
        views = x.repeat(1, 2, 1) + 0.1 * torch.randn(1, 64, 6, generator=generator)
        code, loss = guest.step(x, 1e-2, seen=views)
        assert code.isfinite().all() and float(loss) >= -100.0
    assert float(code.abs().max()) < 1e3


def test_nothing_is_read_back_from_the_device() -> None:
    """A captured round cannot wait for a value; tensors without values show that none is asked for."""
    ours = objective(1.0)
    flat = torch.empty(2, ours.size, device="meta")
    views, rows = torch.empty(2, 8, 6, device="meta"), torch.empty(2, 4, 6, device="meta")
    learned = ours.learn(flat, views, torch.empty_like(flat), target=rows, to_input=True)
    assert learned.loss.shape == (2,)


def test_its_networks_are_listed_in_the_order_of_the_parameters() -> None:
    ours = objective(1.0)
    assert list(ours.nets) == ["encoder", "projector", "adversary"]
    assert sum(net.size for net in ours.nets.values()) == ours.size


def test_rows_that_are_not_given_are_asked_for() -> None:
    ours = objective(1.0)
    flat, views, _ = drawn(ours, 1, 4, 0)
    with pytest.raises(ValueError, match="needs the rows"):
        ours.learn(flat, views, torch.zeros_like(flat))


def test_an_adversary_of_other_widths_is_refused() -> None:
    with pytest.raises(ValueError, match="makes 6 values of 4; 6 of 3 is right"):
        objective(1.0, Projector((4, 5, 6)))


@pytest.mark.parametrize("weight", [-1.0, torch.inf, torch.nan])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="0 or more is right"):
        objective(weight)
