"""A host's step: what it learns from, and what absent and dropped guests leave to it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dvfl.parties.host import ConcatenatingHost, Host
from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.networks.projector import Projector
from dvfl.parties.numerics.learner import Adam, Rule, Sgd
from dvfl.parties.objectives.contrastive import Contrastive
from dvfl.parties.objectives.objective import Reconstruction

WIDTHS = (3, 1, 2)
GUESTS, W_G, CUT = len(WIDTHS), sum(WIDTHS), sum(WIDTHS)
STEP = Sgd(1.0)  # with a rate of 1 a step is the gradient itself


def objective() -> Reconstruction:
    return Reconstruction(Mlp((W_G, 5, 4), ("leaky_relu",) * 2), Mlp((4, 5, W_G), ("leaky_relu", "identity")))


def host(stack: int, rule: Rule = STEP, seed: int = 0) -> Host:
    generator = torch.Generator().manual_seed(seed)
    parameters = torch.stack([Host.init(objective(), WIDTHS, generator) for _ in range(stack)])
    parameters[:, :CUT] = torch.randn(stack, CUT, generator=generator)  # as if learned already
    return Host(objective(), WIDTHS, parameters, rule)


def masks(stack: int, batch: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    present, dropped = (torch.rand(stack, batch, GUESTS, generator=generator) < p for p in (0.7, 0.4))
    return present, dropped


def expected_loss(flat: Tensor, b: Tensor, present: Tensor, dropped: Tensor) -> Tensor:
    """By autograd and without any of the host's own parts but its networks' tensors."""
    spread = torch.tensor(WIDTHS)
    heard, seen = (mask.repeat_interleave(spread, 2) for mask in (present, present & ~dropped))
    x = torch.where(seen, b, flat[:, None, :CUT])
    start = CUT
    for net, last in ((objective().encoder, True), (objective().decoder, False)):
        tensors = net.named(flat[:, start : start + net.size])
        for number in range(2):
            x = x @ tensors[f"{number}.weight"].transpose(1, 2) + tensors[f"{number}.bias"][:, None]
            if number == 0 or last:
                x = torch.nn.functional.leaky_relu(x, 0.01)
        start += net.size
    return ((x - b).square() * heard).sum((1, 2)) / heard.sum((1, 2)).clamp(min=1)


def test_absent_values_start_at_zero() -> None:
    parameters = Host.init(objective(), WIDTHS, torch.Generator().manual_seed(0))
    assert not parameters[:CUT].any()
    assert parameters[CUT:].any()


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3), st.integers(1, 6), st.booleans(), st.booleans(), st.integers(0, 999))
def test_a_step_follows_the_gradient_of_what_was_heard(
    stack: int, batch: int, absent: bool, hidden: bool, seed: int
) -> None:
    ours, b = host(stack, seed=seed), torch.randn(stack, batch, W_G)
    present, dropped = masks(stack, batch, seed)
    before = ours.learner.parameters.clone()
    leaf = before.clone().requires_grad_()
    expected = expected_loss(
        leaf,
        b,
        present if absent else torch.ones_like(present),
        dropped if hidden else torch.zeros_like(dropped),
    )
    (into,) = torch.autograd.grad(expected.sum(), leaf)

    loss = ours.step(b, 1.0, present=present if absent else None, dropped=dropped if hidden else None)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(before - ours.learner.parameters, into, rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_values_of_absent_guests_influence_nothing(seed: int) -> None:
    b, (present, dropped) = torch.randn(2, 4, W_G), masks(2, 4, seed)
    columns = present.repeat_interleave(torch.tensor(WIDTHS), 2)
    garbage = torch.where(columns, b, 1e6 * torch.randn_like(b))
    results = []
    for given_b in (b, garbage):
        trained = host(2, seed=seed)
        loss = trained.step(given_b, 0.1, present=present, dropped=dropped)
        results.append((loss, trained.learner.parameters, trained.encode(given_b, present)))
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_absent_guests_may_hold_values_that_are_no_numbers(value: float) -> None:
    b, present = torch.randn(1, 4, W_G), torch.ones(1, 4, GUESTS, dtype=torch.bool)
    present[:, :, 0] = False
    b[..., : WIDTHS[0]] = value
    trained = host(1)
    loss = trained.step(b, 0.1, present=present)
    assert loss.isfinite().all()
    assert trained.learner.parameters.isfinite().all()
    assert trained.encode(b, present).isfinite().all()


def test_a_dropped_guest_is_still_to_be_reconstructed() -> None:
    b = torch.randn(1, 4, W_G)
    dropped = torch.zeros(1, 4, GUESTS, dtype=torch.bool)
    dropped[..., 0] = True
    other = b.clone()
    other[..., : WIDTHS[0]] += 1
    assert host(1).step(b, 0.1, dropped=dropped) != host(1).step(other, 0.1, dropped=dropped)


def test_once_all_guests_are_there_no_old_gradient_moves_the_absent_values() -> None:
    trained, b = host(1, Sgd(0.1)), torch.randn(1, 4, W_G)
    trained.step(b, 0.1, present=masks(1, 4, 1)[0])
    learned = trained.learner.parameters[:, :CUT].clone()
    trained.step(b, 0.1)
    assert torch.equal(trained.learner.parameters[:, :CUT], learned)


def test_a_dead_host_does_not_move() -> None:
    trained = host(2, Adam(0.1))
    before = trained.learner.parameters.clone()
    trained.step(torch.randn(2, 4, W_G), 0.1, alive=torch.tensor([False, True]))
    assert torch.equal(trained.learner.parameters[0], before[0])
    assert not torch.equal(trained.learner.parameters[1], before[1])


def test_a_concatenating_host_passes_on_what_is_present() -> None:
    plain, b = ConcatenatingHost(WIDTHS, torch.device("cpu")), torch.ones(1, 1, W_G)
    assert plain.encode(b) is b
    present = torch.tensor([[[True, False, True]]])
    assert plain.encode(b, present).tolist() == [[[1, 1, 1, 0, 1, 1]]]


def test_a_concatenating_host_lets_no_absent_value_through() -> None:
    b = torch.full((1, 1, W_G), torch.nan)
    encoded = ConcatenatingHost(WIDTHS, torch.device("cpu")).encode(b, torch.zeros(1, 1, GUESTS, dtype=torch.bool))
    assert encoded.tolist() == [[[0.0] * W_G]]


def contrasting(stack: int, seed: int = 0) -> Host:
    """In double precision, with absent values as if learned already."""
    objective = Contrastive(Mlp((W_G, 5, 4), ("leaky_relu",) * 2), Projector((4, 5, 3)), 0.5)
    generator = torch.Generator().manual_seed(seed)
    parameters = torch.stack([Host.init(objective, WIDTHS, generator) for _ in range(stack)]).double()
    parameters[:, :CUT] = torch.randn(stack, CUT, generator=generator)
    return Host(objective, WIDTHS, parameters, STEP)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3), st.integers(2, 6), st.booleans(), st.booleans(), st.integers(0, 999))
def test_a_host_that_compares_copies_lacks_the_dropped_in_the_first_and_the_absent_in_both(
    stack: int, batch: int, absent: bool, hidden: bool, seed: int
) -> None:
    ours, twin = contrasting(stack, seed), contrasting(stack, seed)
    b, copies = torch.randn(stack, batch, W_G).double(), torch.randn(stack, 2 * batch, W_G).double()
    present, dropped = masks(stack, batch, seed)
    heard = present if absent else torch.ones_like(present)
    first = heard & ~dropped if hidden else heard
    columns = torch.cat([first, heard], 1).repeat_interleave(torch.tensor(WIDTHS), 2)

    before = twin.learner.parameters
    filled = torch.where(columns, copies, before[:, None, :CUT])
    gradient = torch.zeros_like(before)
    learned = twin.objective.learn(before[:, CUT:], filled, gradient[:, CUT:], to_input=True)
    assert learned.dx is not None
    gradient[:, :CUT] = torch.where(columns, 0, learned.dx).sum(1)

    loss = ours.step(b, 1.0, present=present if absent else None, dropped=dropped if hidden else None, copies=copies)
    torch.testing.assert_close(loss, learned.loss)
    torch.testing.assert_close(before - ours.learner.parameters, gradient)


def test_a_host_that_compares_copies_needs_them() -> None:
    with pytest.raises(ValueError, match="compares copies of its input, and none are given"):
        contrasting(1).step(torch.randn(1, 4, W_G).double(), 0.1)
