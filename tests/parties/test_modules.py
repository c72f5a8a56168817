"""Users' own modules as stacked networks."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from dvfl.parties.networks.modules import ModuleNet

MODULES = {
    "perceptron": nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)),
    "normalised": nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.GELU()),
    "convolution": nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten()),
}


class Scaled(nn.Module):
    """A module with a parameter of no dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.scale = nn.Linear(6, 2), nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * self.scale


def stack_of(net: ModuleNet, stack: int) -> Tensor:
    return torch.stack([net.init(torch.Generator().manual_seed(seed)) for seed in range(stack)])


def check_against_autograd(module: nn.Module) -> None:
    torch.manual_seed(0)
    net, stack = ModuleNet(module, 6), 3
    flat, x = stack_of(net, stack), torch.randn(stack, 7, 6)
    dy = torch.randn(stack, 7, net.out_width)
    gradient = torch.zeros_like(flat)
    with torch.no_grad():  # as inside a simulation
        tape = net.forward(flat, x)
        dx = net.backward(flat, tape, dy, gradient, to_input=True)
    assert dx is not None
    for element in range(stack):
        alone = copy.deepcopy(module)
        vector_to_parameters(flat[element], alone.parameters())
        entry = x[element].clone().requires_grad_()
        output = alone(entry)
        *into, into_entry = torch.autograd.grad(output, (*alone.parameters(), entry), dy[element])
        flattened = torch.cat([piece.flatten() for piece in into])
        torch.testing.assert_close(tape[-1][element].detach(), output.detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(gradient[element], flattened, rtol=1e-5, atol=1e-4)
        torch.testing.assert_close(dx[element], into_entry, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", MODULES)
def test_each_element_equals_the_module_alone(name: str) -> None:
    check_against_autograd(MODULES[name])


def test_a_parameter_without_dimensions_is_trained_like_any_other() -> None:
    check_against_autograd(Scaled())


def test_named_tensors_are_views_under_the_modules_own_names() -> None:
    net = ModuleNet(MODULES["perceptron"], 6)
    flat = torch.zeros(2, net.size)
    net.named(flat)["2.bias"][1] = 4.0
    assert list(net.named(flat)) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert flat[1, -3:].tolist() == [4.0, 4.0, 4.0]
    assert not flat[0].any()


def test_the_first_draw_depends_on_the_generator_and_leaves_the_global_one_alone() -> None:
    net = ModuleNet(MODULES["perceptron"], 6)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = net.init(torch.Generator().manual_seed(5))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(first, net.init(torch.Generator().manual_seed(5)))
    assert not torch.equal(first, net.init(torch.Generator().manual_seed(6)))


def test_the_users_module_is_not_changed() -> None:
    module = copy.deepcopy(MODULES["perceptron"])
    before = copy.deepcopy(module.state_dict())
    net = ModuleNet(module, 6)
    flat = stack_of(net, 1)
    net.forward(flat, torch.randn(1, 4, 6))
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


def test_a_module_with_buffers_is_refused() -> None:
    with pytest.raises(ValueError, match="keeps buffers"):
        ModuleNet(nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3)), 6)


@pytest.mark.parametrize("module", [nn.Unflatten(1, (2, 3)), nn.Flatten(0)])
def test_an_output_of_the_wrong_shape_is_refused(module: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"\(2, latent\) is right"):
        ModuleNet(nn.Sequential(nn.Linear(6, 6), module), 6)
