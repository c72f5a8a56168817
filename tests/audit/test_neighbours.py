"""Labels that spread from neighbour to neighbour."""

import torch
from torch import Tensor

from dvfl.audit.readers.neighbours import Neighbours


def moons(rows: int = 400) -> tuple[Tensor, Tensor]:
    """Two arcs that reach into each other, (1, rows, 2), and which of them a row is on, (1, rows)."""
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 2
    angle = torch.pi * torch.rand(rows, generator=draw)
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    z = torch.where((y == 0)[:, None], upper, lower) + 0.03 * torch.randn(rows, 2, generator=draw)
    return z[None], y[None]


def test_one_label_of_each_class_reaches_all_rows_that_hang_together() -> None:
    z, y = moons()
    scores = Neighbours(z).spread(torch.tensor([[0, 1]]), y[:, :2], 2)
    assert float((scores.argmax(2) == y).double().mean()) > 0.98


def test_an_element_of_a_stack_has_neighbours_of_its_own() -> None:
    z, y = moons()
    noise = torch.randn(z.shape, generator=torch.Generator().manual_seed(1))
    known = torch.tensor([[0, 1], [0, 1]])
    both = Neighbours(torch.cat([z, noise])).spread(known, y[:, :2].expand(2, -1), 2)
    torch.testing.assert_close(both[:1], Neighbours(z).spread(known[:1], y[:, :2], 2))
    assert abs(float((both[1].argmax(1) == y[0]).double().mean()) - 0.5) < 0.1


def test_every_class_has_the_same_weight_however_often_it_is_known() -> None:
    z, y = moons()
    scores = Neighbours(z).spread(torch.tensor([[0, 2, 4, 6, 1]]), y[:, [0, 2, 4, 6, 1]], 3)
    torch.testing.assert_close(scores.sum(1), torch.tensor([[1.0, 1.0, 0.0]]))


def test_rows_that_are_all_alike_and_fewer_than_neighbours_are_no_failure() -> None:
    z = torch.ones(1, 4, 3)
    assert Neighbours(z).spread(torch.tensor([[0, 1]]), torch.tensor([[0, 1]]), 2).isfinite().all()
