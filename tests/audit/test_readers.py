"""What attackers learn with: against the same done the long way, and on maps whose form is known."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from dvfl.audit.readers.readers import SMALL, _standard, best_ridge, judged_ridge, network, ridge
from dvfl.audit.recordings.measured import balanced_accuracy, r2

EFFORT = replace(SMALL, hidden=(32,), rates=(1e-3, 1e-2), steps=300)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def brute_force(z: Tensor, x: Tensor, penalty: float) -> float:
    """The sum of squared errors of ridge with each row left out in turn; scaled as with all rows."""
    seen, total = z.double(), 0.0
    centre, spread = (value[0] for value in _standard(seen[None]))
    seen = (seen - centre) / spread
    mean = torch.linalg.eigvalsh(seen @ seen.T if len(z) < z.shape[1] else seen.T @ seen).mean()
    for row in range(len(z)):
        kept = torch.arange(len(z)) != row
        own, aim = seen[kept], x.double()[kept]
        middle, offset = own.mean(0), aim.mean(0)
        gram = (own - middle).T @ (own - middle) + penalty * mean * torch.eye(z.shape[1], dtype=torch.float64)
        weights = torch.linalg.solve(gram, (own - middle).T @ (aim - offset))
        total += float(((seen[row] - middle) @ weights + offset - x[row]).square().sum())
    return total


@pytest.mark.parametrize("rows", [8, 40])
@pytest.mark.parametrize("noise", [0.01, 3.0])
def test_ridge_has_the_least_error_of_leaving_each_row_out(rows: int, noise: float) -> None:
    z = drawn(2, rows, 12)
    x = z @ drawn(2, 12, 3, seed=1) + noise * drawn(2, rows, 3, seed=2)
    _, error = judged_ridge(z, x)
    for element in range(2):
        least = min(brute_force(z[element], x[element], 10.0**power) for power in range(-6, 5))
        assert float(error[element]) == pytest.approx(least, rel=1e-4)


def test_ridge_finds_a_linear_map_and_each_element_its_own() -> None:
    z, maps = drawn(3, 100, 6), drawn(3, 6, 4, seed=1)
    other = drawn(3, 50, 6, seed=2)
    guess = ridge(z, z @ maps + 2)(other)
    assert torch.allclose(guess, other @ maps + 2, atol=1e-2)


def test_ridge_makes_little_of_noise() -> None:
    x, others = drawn(1, 50, 5), drawn(1, 400, 5, seed=1)
    guess = ridge(drawn(1, 50, 40, seed=2), x)(drawn(1, 400, 40, seed=3))
    assert -0.3 < float(r2(others, guess)) < 0.05


def test_a_column_that_is_silent_in_known_rows_does_not_drown_the_others() -> None:
    z, other, maps = drawn(1, 60, 5), drawn(1, 200, 5, seed=1), drawn(5, 3, seed=2)
    x, truth = z @ maps, other @ maps
    z[..., 0] *= 1e-5
    x = z @ maps
    truth = torch.cat([torch.zeros(1, 200, 1), other[..., 1:]], 2) @ maps
    for reader in (ridge(z, x), network(z, x, EFFORT, [0])):
        assert float(r2(truth, reader(other))) > 0.3


def test_the_better_view_is_chosen_for_each_element() -> None:
    x, truth, useless, more = drawn(2, 40, 3), drawn(2, 50, 3, seed=1), drawn(2, 40, 3, seed=2), drawn(2, 50, 3, seed=3)
    first = torch.stack([x[0], useless[0]]), torch.stack([truth[0], more[0]])
    second = torch.stack([useless[1], x[1]]), torch.stack([more[1], truth[1]])
    for views in ([first, second], [second, first]):
        assert (r2(truth, best_ridge(views, x)) > 0.99).all()
    with pytest.raises(ValueError, match="no view"):
        best_ridge([], x)


def test_a_network_finds_what_is_not_linear() -> None:
    z, other = drawn(2, 500, 3), drawn(2, 300, 3, seed=1)
    x, truth = z.abs(), other.abs()
    by_network, by_ridge = r2(truth, network(z, x, EFFORT, [0, 1])(other)), r2(truth, ridge(z, x)(other))
    assert (by_network > 0.9).all()
    assert (by_ridge < 0.1).all()


def test_a_network_learns_classes_that_are_given_in_order() -> None:
    y = torch.arange(5).repeat_interleave(20).expand(2, -1)
    centres = 4 * torch.eye(5)
    reader = network(centres[y] + drawn(2, 100, 5), y, EFFORT, [0, 1], classes=5)
    assert (balanced_accuracy(y, reader(centres[y] + drawn(2, 100, 5, seed=1))) > 90).all()


def test_an_element_of_a_stack_of_networks_is_the_network_alone() -> None:
    z, x, other = drawn(2, 60, 4), drawn(2, 60, 2, seed=1), drawn(2, 10, 4, seed=2)
    both, alone = network(z, x, EFFORT, [5, 5]), network(z[:1], x[:1], EFFORT, [5])
    assert torch.allclose(both(other)[:1], alone(other[:1]), atol=1e-3)


def test_a_network_is_not_learned_from_one_row() -> None:
    with pytest.raises(ValueError, match="1 known row"):
        network(drawn(1, 1, 4), drawn(1, 1, 2), EFFORT, [0])
