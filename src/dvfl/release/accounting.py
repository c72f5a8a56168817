"""What noise promises: epsilon and delta, by opacus' numerical accountant (the extra `dvfl[privacy]`).

PRV accounting (Gopi, Lee and Wutschitz, "Numerical composition of differential privacy", 2021) gives upper bounds that
are exact but for a small error, here 0.4 percent of epsilon. What it cannot tell is infinite.
"""

import math
import warnings
from functools import lru_cache
from importlib.util import find_spec

import numpy as np

from dvfl.errors import UserError

DELTA = 1e-5  # of everything that noise on encodings promises: it is about one row's own, however many there are
LEAST_DELTA = 1e-12  # below it, the accountant's rounding would decide
_ERROR, _LEAST_ERROR = 0.004, 2e-4  # of epsilon: a share of it, and at least
_LARGE = 500.0  # mean privacy loss beyond which the accountant overflows, and nothing is promised anyway
_LEAST_SAMPLED_NOISE = 0.2  # likewise, where rows are sampled
_MOST_NOISE = 1e5  # that is looked for
_HALVINGS = 10  # of a factor of two, in the search for a noise


def epsilon_of_release(noise: float, releases: int, delta: float) -> float:
    """Of one row's encoding, clipped and sent `releases` times with noise of `noise` clips, drawn anew each time.

    Neighbours differ in one row of a guest, replaced by any other. Both encodings lie within the clip, so they are at
    most two clips apart: that is the sensitivity. Neither the encoder nor anything that others make of what was sent
    is counted: the encoder is taken to be known, and it must have learned from other rows or with DP of its own.
    """
    _check(delta, noise=noise, releases=releases)
    return _epsilon(noise / 2, 1.0, releases, delta)


def noise_for(epsilon: float, releases: int, delta: float) -> float:
    """The least noise whose `epsilon_of_release` is not above `epsilon`."""
    _check(delta, epsilon=epsilon, releases=releases)
    return 2 * _least(epsilon, 1.0, releases, delta)


def epsilon_of_training(sample_rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Of DP-SGD: in each step a row takes part with probability `sample_rate`; noise in units of the gradients' bound.

    Neighbours differ in one row that is there or not.
    """
    _check(delta, noise_multiplier=noise_multiplier, steps=steps)
    _check_rate(sample_rate)
    return _epsilon(noise_multiplier, sample_rate, steps, delta)


def noise_for_training(epsilon: float, sample_rate: float, steps: int, delta: float) -> float:
    """The least noise multiplier whose `epsilon_of_training` is not above `epsilon`."""
    _check(delta, epsilon=epsilon, steps=steps)
    _check_rate(sample_rate)
    return _least(epsilon, sample_rate, steps, delta)


def usual_delta(rows: int) -> float:
    """Where none is given: a little less than one in so many rows."""
    return max(LEAST_DELTA, min(0.5, math.pow(rows, -1.1)))


def release_epsilon(noise: float, releases: int) -> float | None:
    """`epsilon_of_release` at DELTA; None without noise, or where no accountant is installed."""
    return epsilon_of_release(noise, releases, DELTA) if noise and find_spec("opacus") is not None else None


def as_plain(epsilon: float | None) -> float | str | None:
    """As JSON has it: no number is infinite there."""
    return "infinite" if epsilon == math.inf else epsilon


def promise(noise: float, releases: int) -> str:
    """What noise on encodings promises, in a few words."""
    if find_spec("opacus") is None:
        return "what it promises is told with pip install 'dvfl[privacy]'"
    epsilon = epsilon_of_release(noise, releases, DELTA)
    counted = f"epsilon {epsilon:.3g}" if epsilon < math.inf else "an epsilon beyond counting"
    return (
        f"{counted} at delta {DELTA:g} for the encodings of one row of a guest, sent {releases}"
        f" time{'s' * (releases > 1)}, against any other row in its place and a given encoder"
    )


def needs_opacus() -> None:
    """Refuses where the extra is not installed."""
    if find_spec("opacus") is None:
        raise UserError("privacy accounting needs the extra: pip install 'dvfl[privacy]'")


def _epsilon(noise_multiplier: float, sample_rate: float, steps: int, delta: float, near: float | None = None) -> float:
    """The accountant's, with an error that suits it; `near`: about as large as it may be expected to be."""
    needs_opacus()
    from opacus.accountants import PRVAccountant

    if sample_rate * steps / (2 * noise_multiplier**2) > _LARGE:
        return math.inf
    if sample_rate < 1 and noise_multiplier < _LEAST_SAMPLED_NOISE:
        return math.inf
    accountant = PRVAccountant()
    accountant.history = [(noise_multiplier, sample_rate, steps)]
    # It takes the logarithm of 1 - sample_rate and means minus infinity; its warnings are of a rougher bound that only
    # sets how far it looks.
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        if near is None:
            near = float(accountant.get_epsilon(delta, eps_error=0.1)) - 0.1
        found = float(accountant.get_epsilon(delta, eps_error=min(0.1, max(_LEAST_ERROR, _ERROR * near))))
    return math.inf if math.isnan(found) else max(0.0, found)


@lru_cache(64)  # guests of one federation ask for the same
def _least(epsilon: float, sample_rate: float, steps: int, delta: float) -> float:
    """The least noise multiplier, within a thousandth, that costs no more than epsilon."""

    def enough(noise: float) -> bool:
        return _epsilon(noise, sample_rate, steps, delta, near=epsilon) <= epsilon

    high = 1.0
    while not enough(high):
        high *= 2
        if high > _MOST_NOISE:
            raise UserError(f"epsilon {epsilon}: no noise that can be counted gives as little; a larger one is right")
    while enough(high / 2):
        high /= 2
    low = high / 2
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(delta: float, **positive: float) -> None:
    if not LEAST_DELTA <= delta < 1:
        raise UserError(f"delta {delta}: from {LEAST_DELTA} to below 1 is right")
    for name, value in positive.items():
        if not 0 < value < math.inf:
            raise UserError(f"{name} {value}: a number above 0 is right")


def _check_rate(sample_rate: float) -> None:
    if not 0 < sample_rate <= 1:
        raise UserError(f"sample_rate {sample_rate}: above 0 and at most 1 is right")
