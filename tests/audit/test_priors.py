"""Public rows: against the conditional mean of a Gaussian, which is known."""

import torch

from dvfl.audit.readers.priors import Prior, posterior, principal
from dvfl.audit.recordings.measured import r2
from dvfl.simulation.cpu_threads import threads


def test_principal_directions_come_with_their_variances_the_largest_first() -> None:
    x = torch.randn(2, 2000, 3, generator=torch.Generator().manual_seed(0)).double() * torch.tensor([1.0, 3.0, 2.0])
    mean, variances, directions = principal(x + 5)
    assert torch.allclose(mean, torch.full_like(mean, 5.0), atol=0.3)
    assert torch.allclose(variances[:, 0], torch.tensor([9.0, 4.0, 1.0]).double(), rtol=0.15)
    assert torch.allclose(directions[:, :, 0].abs(), torch.tensor([0.0, 1.0, 0.0]).double(), atol=0.1)


def test_many_pairs_give_what_the_best_linear_guess_gives() -> None:
    """Six columns seen as three encodings with noise: what is not seen follows from the covariance."""
    draw = torch.Generator().manual_seed(0)
    spread = torch.randn(6, 6, generator=draw)
    x = torch.randn(1, 6000, 6, generator=draw) @ spread
    seen = torch.randn(6, 3, generator=draw)
    z = x @ seen + 0.3 * torch.randn(1, 6000, 3, generator=draw)
    covariance = spread.T @ spread
    best = z @ torch.linalg.solve(seen.T @ covariance @ seen + 0.09 * torch.eye(3), seen.T @ covariance)
    made = posterior(Prior.of(x[:, 3000:]), z[:, :1000], x[:, :1000], z[:, 1000:3000], z[:, :3000])
    truth = x[:, 1000:3000]
    assert 0.3 < float(r2(truth, best[:, 1000:3000])) < 0.95
    assert float(r2(truth, made)) > float(r2(truth, best[:, 1000:3000])) - 0.02


def test_guesses_keep_within_what_public_rows_have() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(1, 300, 4, generator=draw)
    made = posterior(Prior.of(x), 2 * x[:, :50], x[:, :50], 100 * x[:, 50:], 2 * x)
    assert made.min() >= x.min()
    assert made.max() <= x.max()


def test_one_known_row_is_enough_for_a_guess() -> None:
    x = torch.rand(1, 300, 4, generator=torch.Generator().manual_seed(0))
    assert posterior(Prior.of(x), x[:, :1], x[:, :1], x[:, 1:], x).isfinite().all()


def test_wide_tables_are_no_different_with_several_threads() -> None:
    """MKL's LU factors of a stack of 160 rows and more are wrong with two threads."""
    x = torch.rand(2, 400, 200, generator=torch.Generator().manual_seed(0))
    given = x[:, :100, :40], x[:, :100], x[:, 100:, :40], x[..., :40]
    with threads(2):
        made = posterior(Prior.of(x), *given)
    with threads(1):
        torch.testing.assert_close(made, posterior(Prior.of(x), *given), rtol=1e-4, atol=1e-4)


def test_columns_that_are_all_alike_are_guessed_as_they_are() -> None:
    x = torch.full((1, 60, 4), 0.5)
    assert (posterior(Prior.of(x), x[:, :10], x[:, :10], x[:, 10:], x) == 0.5).all()
