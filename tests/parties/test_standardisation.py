"""Deviations of encodings with all guests, widened by those with some hidden."""

import torch

from dvfl.parties.standardisation import moments, widened


def test_deviations_are_kept_where_hidden_guests_move_a_dimension_less() -> None:
    plain = torch.randn(500, 3, generator=torch.Generator().manual_seed(0)) * 2 + 1
    centre, spread = moments(plain)
    assert torch.equal(widened(centre, spread, centre + (plain - centre) / 2), spread)


def test_a_dimension_that_hidden_guests_move_farther_is_measured_by_them() -> None:
    plain = torch.full((100, 2), 1.0)
    plain[:, 1] += torch.linspace(-1e-3, 1e-3, 100)
    centre, spread = moments(plain)
    wide = widened(centre, spread, torch.full((50, 2), 4.0))
    torch.testing.assert_close(wide, torch.full((2,), 3.0))


def test_what_never_came_widens_nothing() -> None:
    centre, spread = moments(torch.tensor([[0.0], [2.0]]))
    assert widened(centre, spread, torch.full((5, 1), torch.nan)) == spread
