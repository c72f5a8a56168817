"""The owner's step and prediction, with senders that are absent and dimensions that are dropped."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.numerics.learner import Adam, Rule, Sgd
from dvfl.parties.objectives.objective import CrossEntropy
from dvfl.parties.owner import Owner

WIDTHS = (3, 2)
CUT = sum(WIDTHS)
HEAD = Mlp((CUT, 4, 3), ("leaky_relu", "identity"))


def owner(stack: int, rule: Rule, seed: int = 0) -> Owner:
    generator = torch.Generator().manual_seed(seed)
    supervision = CrossEntropy(HEAD)
    parameters = torch.stack([Owner.init(supervision, WIDTHS, generator) for _ in range(stack)])
    parameters[:, :CUT] = torch.randn(stack, CUT, generator=generator)
    return Owner(supervision, WIDTHS, parameters, rule)


def drawn(stack: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    e = torch.randn(stack, 6, CUT, generator=generator)
    y = torch.randint(3, (stack, 6), generator=generator)
    present = torch.rand(stack, 6, len(WIDTHS), generator=generator) < 0.6
    keep = (torch.rand(stack, 6, CUT, generator=generator) < 0.5).float() * 2
    return e, y, present, keep


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3), st.booleans(), st.booleans(), st.integers(0, 999))
def test_a_step_follows_the_gradient_of_what_was_seen(stack: int, absent: bool, thinned: bool, seed: int) -> None:
    ours = owner(stack, Sgd(1.0), seed)
    e, y, present, keep = drawn(stack, seed)
    before = ours.learner.parameters.clone()
    leaf = before.clone().requires_grad_()
    columns = present.repeat_interleave(torch.tensor(WIDTHS), 2) | (not absent)
    x = torch.where(columns, e, leaf[:, None, :CUT]) * (keep if thinned else 1)
    tensors = HEAD.named(leaf[:, CUT:])
    x = functional.leaky_relu(x @ tensors["0.weight"].transpose(1, 2) + tensors["0.bias"][:, None], 0.01)
    output = x @ tensors["1.weight"].transpose(1, 2) + tensors["1.bias"][:, None]
    expected = functional.cross_entropy(output.transpose(1, 2), y, reduction="none").mean(1)
    (into,) = torch.autograd.grad(expected.sum(), leaf)

    loss = ours.step(e, y, 1.0, present=present if absent else None, keep=keep if thinned else None)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(before - ours.learner.parameters, into, rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_values_of_absent_senders_influence_nothing(seed: int) -> None:
    e, y, present, keep = drawn(2, seed)
    columns = present.repeat_interleave(torch.tensor(WIDTHS), 2)
    garbage = torch.where(columns, e, torch.full_like(e, torch.nan))
    results = []
    for given_e in (e, garbage):
        trained = owner(2, Adam(0.1), seed)
        loss = trained.step(given_e, y, 0.1, present=present, keep=keep)
        results.append((loss, trained.learner.parameters, trained.predict(given_e, present)))
    assert all(map(torch.equal, *results))


def test_once_all_senders_are_there_no_old_gradient_moves_the_absent_values() -> None:
    e, y, present, _ = drawn(1, 1)
    trained = owner(1, Sgd(0.1))
    trained.step(e, y, 0.1, present=present)
    learned = trained.learner.parameters[:, :CUT].clone()
    trained.step(e, y, 0.1)
    assert torch.equal(trained.learner.parameters[:, :CUT], learned)


def test_a_stopped_owner_does_not_move() -> None:
    e, y, _, _ = drawn(2, 0)
    trained = owner(2, Sgd(0.1, momentum=0.5))
    before = trained.learner.parameters.clone()
    trained.step(e, y, 0.1, alive=torch.tensor([True, False]))
    assert not torch.equal(trained.learner.parameters[0], before[0])
    assert torch.equal(trained.learner.parameters[1], before[1])
