"""The accountant against another one and against closed forms, its inverse, and what it refuses."""

import importlib.util
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from dvfl.cli import main
from dvfl.errors import UserError
from dvfl.release.accounting import (
    epsilon_of_release,
    epsilon_of_training,
    noise_for,
    noise_for_training,
    promise,
    release_epsilon,
    usual_delta,
)

CLOSE = 0.01  # within one percent


@pytest.fixture(autouse=True)
def accountant() -> None:
    pytest.importorskip("opacus", reason="the extra dvfl[privacy] is not installed")


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Of the Gaussian mechanism, exactly: Balle and Wang (2018), theorem 8; mu as in Dong, Roth and Su."""

    def above(epsilon: float) -> float:
        tail = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
        return float(norm.cdf(mu / 2 - epsilon / mu) - tail - delta)

    return float(brentq(above, 0, mu * mu / 2 + 40 * mu + 1)) if above(0) > 0 else 0.0


def mu_of(noise: float, releases: int) -> float:
    """Sensitivity, two clips, times the root of the releases, in units of the noise."""
    return 2 * math.sqrt(releases) / noise


def close(ours: float, theirs: float) -> bool:
    """An upper bound, at most one percent above; of the smallest, as close as the accountant's absolute error."""
    return theirs * (1 - 1e-4) - 1e-6 <= ours <= theirs * (1 + CLOSE) + 3e-4


@given(st.floats(0.4, 200), st.integers(1, 300), st.sampled_from([1e-3, 1e-5, 1e-7, 1e-9]))
@settings(max_examples=60, deadline=None)
def test_releases_cost_what_the_gaussian_mechanism_says(noise: float, releases: int, delta: float) -> None:
    mu = mu_of(noise, releases)
    ours = epsilon_of_release(noise, releases, delta)
    if mu * mu / 2 > 500:
        assert math.isinf(ours)
    else:
        assert close(ours, gaussian_epsilon(mu, delta))


@pytest.mark.parametrize("noise", [1.0, 4.0, 20.0])
@pytest.mark.parametrize("releases", [1, 21])
def test_releases_cost_what_another_accountant_says(noise: float, releases: int) -> None:
    other = pytest.importorskip("dp_accounting")
    exact = other.get_epsilon_gaussian(noise / 2 / math.sqrt(releases), 1e-5)
    ours = epsilon_of_release(noise, releases, 1e-5)
    assert close(ours, exact)
    if noise >= 4:  # its distribution of losses is slow where they are large
        pld = other.pld.PLDAccountant()
        pld.compose(other.GaussianDpEvent(noise / 2), releases)
        assert close(ours, pld.get_epsilon(1e-5))


@pytest.mark.parametrize(
    ("rate", "noise", "steps"), [(0.05, 0.8, 300), (0.02, 1.1, 500), (0.01, 2.0, 1000), (0.2, 1.5, 40), (1.0, 8.0, 10)]
)
@pytest.mark.parametrize("delta", [1e-5, 1e-7])
def test_training_costs_what_another_accountant_says(rate: float, noise: float, steps: int, delta: float) -> None:
    other = pytest.importorskip("dp_accounting")
    pld = other.pld.PLDAccountant()
    pld.compose(other.PoissonSampledDpEvent(rate, other.GaussianDpEvent(noise)), steps)
    assert close(epsilon_of_training(rate, noise, steps, delta), pld.get_epsilon(delta))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("releases", [1, 21])
def test_the_noise_for_an_epsilon_gives_it_and_no_less_would_do(epsilon: float, releases: int) -> None:
    noise = noise_for(epsilon, releases, 1e-5)
    assert epsilon * (1 - CLOSE) < epsilon_of_release(noise, releases, 1e-5) <= epsilon
    assert epsilon_of_release(noise * 0.99, releases, 1e-5) > epsilon


def test_the_noise_for_a_training_gives_its_epsilon() -> None:
    noise = noise_for_training(3.0, 0.05, 200, 1e-5)
    assert 3.0 * (1 - CLOSE) < epsilon_of_training(0.05, noise, 200, 1e-5) <= 3.0


def test_more_noise_costs_less_and_more_releases_cost_more() -> None:
    costs = [epsilon_of_release(noise, 5, 1e-5) for noise in (1, 2, 4, 8)]
    assert costs == sorted(costs, reverse=True)
    costs = [epsilon_of_release(3, releases, 1e-5) for releases in (1, 2, 20)]
    assert costs == sorted(costs)


def test_what_promises_nothing_is_infinite_and_told_at_once() -> None:
    assert math.isinf(epsilon_of_release(0.05, 21, 1e-5))
    assert math.isinf(epsilon_of_training(0.003, 0.1, 2000, 1e-5))


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_numbers_that_mean_nothing_are_refused(wrong: float) -> None:
    for call in (
        lambda: noise_for(wrong, 1, 1e-5),
        lambda: epsilon_of_release(wrong, 1, 1e-5),
        lambda: epsilon_of_training(0.1, wrong, 10, 1e-5),
        lambda: noise_for_training(1.0, wrong, 10, 1e-5),
        lambda: noise_for(1.0, 1, wrong),
    ):
        with pytest.raises(UserError, match="is right"):
            call()


@pytest.mark.parametrize("delta", [0.0, 1.0, 2.0, 1e-13])
def test_a_delta_that_is_no_probability_or_too_small_is_refused(delta: float) -> None:
    with pytest.raises(UserError, match="delta"):
        epsilon_of_release(1.0, 1, delta)


def test_the_usual_delta_is_less_than_one_in_so_many_rows() -> None:
    assert usual_delta(60_000) == pytest.approx(60_000**-1.1)
    assert usual_delta(1) == 0.5


def test_a_promise_names_epsilon_delta_and_how_often_a_row_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    line = promise(8.0, 21)
    assert f"epsilon {epsilon_of_release(8.0, 21, 1e-5):.3g} at delta 1e-05" in line
    assert "sent 21 times" in line
    assert promise(0.01, 1).startswith("an epsilon beyond counting at delta")
    monkeypatch.setattr("dvfl.release.accounting.find_spec", lambda name: None)
    assert "pip install 'dvfl[privacy]'" in promise(8.0, 21)


def test_releases_are_counted_at_one_delta_and_without_noise_there_is_nothing_to_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert release_epsilon(8.0, 21) == epsilon_of_release(8.0, 21, 1e-5)
    assert release_epsilon(0.0, 21) is None
    monkeypatch.setattr("dvfl.release.accounting.find_spec", lambda name: None)
    assert release_epsilon(8.0, 21) is None


@pytest.mark.parametrize(("strategy", "sent"), [("dvfl", "sent 3 times"), ("fedonce", "sent 1 time,")])
def test_a_training_with_noise_tells_what_it_promises(
    strategy: str, sent: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ["--guest-epochs", "2", "--owner-epochs", "1", "--clip", "2", "--noise", "20"]
    assert main(["train", "--strategy", strategy, *short, "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().err
    assert "noise: epsilon " in told and sent in told


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dvfl.release.accounting.find_spec", lambda name: None)
    assert importlib.util.find_spec("opacus") is not None
    with pytest.raises(UserError, match=r"needs the extra: pip install 'dvfl\[privacy\]'"):
        epsilon_of_release(1.0, 1, 1e-5)
