"""The mask over absent senders' columns and the values that stand in their place."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.parties.absence import Absence

CPU = torch.device("cpu")


def test_a_senders_presence_covers_all_its_columns() -> None:
    present = torch.tensor([[[True, False, True], [False, True, False]]])
    columns = Absence((2, 1, 3), CPU).columns(present)
    assert columns.int().tolist() == [[[1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 0]]]


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 6), st.integers(0, 999))
def test_filling_and_its_gradient_equal_autograd(widths: list[int], stack: int, batch: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    absence = Absence(tuple(widths), CPU)
    columns = absence.columns(torch.rand(stack, batch, len(widths), generator=generator) < 0.5)
    x = torch.randn(stack, batch, absence.size, generator=generator)
    dx = torch.randn(stack, batch, absence.size, generator=generator)
    absent = torch.randn(stack, absence.size, generator=generator).requires_grad_()
    expected = x * columns + absent[:, None] * ~columns
    (into,) = torch.autograd.grad(expected, absent, dx)

    gradient = torch.full_like(into, 9)
    absence.learn(dx, columns, gradient)
    torch.testing.assert_close(absence.fill(absent.detach(), x, columns), expected.detach())
    torch.testing.assert_close(gradient, into)


def test_whatever_an_absent_sender_has_does_not_come_through() -> None:
    absence = Absence((1, 2), CPU)
    columns = absence.columns(torch.tensor([[[True, False]]]))
    filled = absence.fill(torch.tensor([[5.0, 6.0, 7.0]]), torch.tensor([[[1.0, torch.nan, torch.inf]]]), columns)
    assert filled.tolist() == [[[1.0, 6.0, 7.0]]]
