"""The CUDA kernels compute what the CPU does; skipped where there is no GPU."""

import pytest
import torch
from torch import Tensor

from dvfl.parties.networks.mlp import Mlp
from dvfl.parties.numerics import operations
from dvfl.parties.numerics.learner import Adam, Learner, Rule, Sgd

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def close(found: Tensor, expected: Tensor) -> bool:
    return bool((found.cpu() - expected).norm() <= 1e-5 * expected.norm() + 1e-6)


def stepped(start: Tensor, rule: Rule, rate: Tensor, *, masked: bool) -> tuple[Learner, Learner]:
    """Twenty updates on the CPU and on the GPU with the same gradients; the last of five elements is never alive."""
    cpu, gpu = Learner(start.clone(), rule), Learner(start.cuda(), rule)
    for _ in range(20):
        gradient, alive = torch.randn(start.shape), torch.rand(5) < 0.6
        alive[4] = False
        for learner in (cpu, gpu):
            device = learner.gradient.device
            learner.gradient.copy_(gradient)
            learner.update(rate.to(device), alive.to(device) if masked else None)
    return cpu, gpu


@pytest.mark.parametrize("activation", ["identity", "relu", "leaky_relu", "sigmoid"])
@pytest.mark.parametrize(("stack", "rows", "widths"), [(1, 64, (196, 100, 80)), (7, 33, (5, 70, 1, 129))])
def test_a_network_on_a_gpu_equals_the_one_on_the_cpu(
    activation: operations.Activation, stack: int, rows: int, widths: tuple[int, ...]
) -> None:
    net = Mlp(widths, (activation,) * (len(widths) - 1))
    flat = torch.stack([net.init(torch.Generator().manual_seed(seed)) for seed in range(stack)])
    x, dy = torch.randn(stack, rows, widths[0]), torch.randn(stack, rows, widths[-1])
    ours, theirs = torch.zeros_like(flat), torch.zeros_like(flat, device="cuda")
    tape, tape_there = net.forward(flat, x), net.forward(flat.cuda(), x.cuda())
    dx = net.backward(flat, tape, dy.clone(), ours, to_input=True)
    dx_there = net.backward(flat.cuda(), tape_there, dy.cuda(), theirs, to_input=True)
    assert dx is not None
    assert dx_there is not None
    assert close(tape_there[-1], tape[-1])
    assert close(theirs, ours)
    assert close(dx_there, dx)


@pytest.mark.parametrize(("stack", "rows", "width"), [(1, 64, 320), (5, 33, 7), (3, 200, 1)])
def test_losses_and_their_gradients_on_a_gpu_equal_those_on_the_cpu(stack: int, rows: int, width: int) -> None:
    y, target = torch.randn(stack, rows, width), torch.randn(stack, rows, width)
    labels = torch.randint(width, (stack, rows))
    for expected, found in (
        (operations.squared_error(y, target), operations.squared_error(y.cuda(), target.cuda())),
        (operations.cross_entropy(y, labels), operations.cross_entropy(y.cuda(), labels.cuda())),
    ):
        assert all(close(a, b) for a, b in zip(found, expected, strict=True))


def test_adam_on_a_gpu_equals_the_one_on_the_cpu_and_leaves_the_dead_alone() -> None:
    start = torch.randn(5, 3000)
    cpu, gpu = stepped(start, Adam(2e-3, weight_decay=1e-5), torch.tensor([2e-3]), masked=True)
    assert torch.allclose(gpu.parameters.cpu(), cpu.parameters, rtol=1e-5, atol=1e-6)
    assert torch.equal(gpu.steps.cpu(), cpu.steps)
    assert torch.equal(gpu.parameters[4].cpu(), start[4])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("decay", [0.0, 1e-2])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_gradient_descent_on_a_gpu_equals_that_on_the_cpu_and_leaves_the_dead_alone(
    momentum: float, decay: float, masked: bool
) -> None:
    start = torch.randn(5, 3000)
    cpu, gpu = stepped(start, Sgd(0.05, momentum, decay), torch.tensor([0.05]), masked=masked)
    for name, expected in cpu.state().items():
        assert torch.allclose(gpu.state()[name].cpu(), expected, rtol=1e-5, atol=1e-5), name
    assert torch.equal(gpu.steps.cpu(), cpu.steps)
    assert torch.equal(gpu.parameters[4].cpu(), start[4]) == masked


@pytest.mark.parametrize("rule", [Adam(1.0, weight_decay=1e-5), Sgd(1.0, momentum=0.5)], ids=str)
def test_every_element_may_have_a_rate_of_its_own(rule: Rule) -> None:
    start, rate = torch.randn(5, 3000), torch.tensor([0.1, 0.01, 0.1, 0.05, 0.2])
    cpu, gpu = stepped(start, rule, rate, masked=True)
    assert torch.allclose(gpu.parameters.cpu(), cpu.parameters, rtol=1e-4, atol=1e-5)
