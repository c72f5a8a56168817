"""The update rules against PyTorch's own, and what does not move in a dead element."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dvfl.parties.numerics.learner import Adam, Learner, Rule, Sgd

RULES = [
    Adam(2e-3),
    Adam(2e-3, weight_decay=1e-2),
    Adam(1e-1, beta1=0.5, beta2=0.9, eps=1e-3),
    Sgd(8e-2),
    Sgd(1e-2, momentum=0.5),
    Sgd(1e-2, momentum=0.9, weight_decay=1e-2),
    Sgd(1e-2, weight_decay=1e-1),
]
STEPS = 60


def theirs(rule: Rule, parameters: list[Tensor]) -> torch.optim.Optimizer:
    if isinstance(rule, Sgd):
        return torch.optim.SGD(parameters, rule.rate, rule.momentum, weight_decay=rule.weight_decay)
    betas = rule.beta1, rule.beta2
    return torch.optim.Adam(parameters, rule.rate, betas, rule.eps, rule.weight_decay)


def everything(learner: Learner, element: int) -> list[Tensor]:
    return [tensor[element].clone() for tensor in learner.state().values()]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_many_steps_equal_pytorchs_optimiser(rule: Rule) -> None:
    torch.manual_seed(0)
    start = torch.randn(3, 50)
    learner = Learner(start.clone(), rule)
    alone = [row.clone().requires_grad_() for row in start]
    optimiser = theirs(rule, alone)
    for _ in range(STEPS):
        gradient = torch.randn(3, 50)
        learner.gradient.copy_(gradient)
        learner.update(rule.rate)
        for row, parameter in zip(gradient, alone, strict=True):
            parameter.grad = row.clone()
        optimiser.step()
    torch.testing.assert_close(learner.parameters, torch.stack(alone).detach(), rtol=1e-5, atol=1e-6)
    assert learner.steps.tolist() == [STEPS] * 3


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rate_given_as_a_tensor_is_the_same_rate(rule: Rule) -> None:
    torch.manual_seed(0)
    start, gradient = torch.randn(2, 20), torch.randn(2, 20)
    moved = []
    for rate in (rule.rate, torch.tensor(rule.rate)):
        learner = Learner(start.clone(), rule)
        learner.gradient.copy_(gradient)
        learner.update(rate)
        moved.append(learner.parameters)
    torch.testing.assert_close(*moved)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_elements_with_rates_of_their_own_move_as_if_they_were_alone(rule: Rule) -> None:
    torch.manual_seed(0)
    start, rates = torch.randn(4, 20), torch.tensor([0.1, 0.01, 0.1, 0.05])
    learner = Learner(start.clone(), rule)
    alone = [Learner(row[None].clone(), rule) for row in start]
    for mask in ([True] * 4, [True, False, True, True], [False, True, True, False], None):
        gradient = torch.randn(4, 20)
        learner.gradient.copy_(gradient)
        learner.update(rates, None if mask is None else torch.tensor(mask))
        for element, live in enumerate(mask or [True] * 4):
            if live:
                alone[element].gradient.copy_(gradient[element])
                alone[element].update(float(rates[element]))
    for element, single in enumerate(alone):
        torch.testing.assert_close(learner.parameters[element], single.parameters[0], rtol=1e-6, atol=1e-7)
        assert learner.steps[element] == single.steps[0]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(RULES), st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=12), st.integers())
def test_dead_elements_do_not_move_and_live_ones_do_not_notice(rule: Rule, alive: list[list[bool]], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed % 2**63)
    start = torch.randn(4, 20, generator=generator)
    learner = Learner(start.clone(), rule)
    alone = [Learner(row[None].clone(), rule) for row in start]
    for mask in alive:
        gradient = torch.randn(4, 20, generator=generator)
        learner.gradient.copy_(gradient)
        before = [everything(learner, element) for element in range(4)]
        learner.update(rule.rate, torch.tensor(mask))
        for element, live in enumerate(mask):
            if live:
                alone[element].gradient.copy_(gradient[element])
                alone[element].update(rule.rate)
            else:
                after = everything(learner, element)
                assert all(map(torch.equal, before[element], after))  # bit by bit
    for element, single in enumerate(alone):
        assert all(map(torch.equal, everything(learner, element), everything(single, 0)))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_restored_learner_goes_on_as_if_nothing_had_happened(rule: Rule) -> None:
    torch.manual_seed(0)
    gradients = torch.randn(10, 2, 20)
    first = Learner(torch.randn(2, 20), rule)
    second = Learner(torch.zeros(2, 20), rule)
    for number, gradient in enumerate(gradients):
        if number == 5:
            second.restore({name: tensor.clone() for name, tensor in first.state().items()})
        for learner in (first, second):
            learner.gradient.copy_(gradient)
            learner.update(rule.rate)
    assert all(torch.equal(first.state()[name], tensor) for name, tensor in second.state().items())
