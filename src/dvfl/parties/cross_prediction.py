"""All guests' encodings as one distribution: each guest's predicted from those of any others, by ridge regression.

What is kept is the covariance of standardised encodings, from which the regression on any set of guests follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Marks = NDArray[np.bool_]

CLIP = 6.0  # deviations beyond which a value is no worse: dimensions that are hardly ever active have long tails
_PENALTIES = tuple(10.0**power for power in np.arange(-5, 1.5, 0.5))  # of the regression, against a variance of 1


@dataclass(frozen=True)
class Joint:
    """Moments of training rows, and what guests' encodings have to do with each other."""

    widths: tuple[int, ...]
    centre: Floats  # (all widths,)
    spread: Floats
    covariance: Floats  # (all widths, all widths), of standardised values
    penalties: NDArray[np.float64]  # (guests,)

    @property
    def columns(self) -> list[slice]:
        """Where each guest's dimensions are."""
        ends = np.cumsum(self.widths).tolist()
        return [slice(end - width, end) for width, end in zip(self.widths, ends, strict=True)]

    def standardised(self, values: Floats, guest: int) -> Floats:
        """A guest's encodings in deviations from their mean in training."""
        own = self.columns[guest]
        z = (values.astype(np.float64) - self.centre[own]) / self.spread[own]
        return np.clip(z, -CLIP, CLIP).astype(np.float32)

    def predictor(self, guest: int, others: Sequence[int], penalty: float | None = None) -> NDArray[np.float64]:
        """The regression of a guest's encodings on those of others: (all widths, its width), zeros for anyone else."""
        own, columns = self.columns[guest], self.columns
        made = np.zeros((sum(self.widths), self.widths[guest]))
        if not others:
            return made
        given = np.concatenate([np.arange(columns[other].start, columns[other].stop) for other in others])
        ridge = self.penalties[guest] if penalty is None else penalty
        within = self.covariance[np.ix_(given, given)].astype(np.float64) + ridge * np.eye(len(given))
        made[given] = np.linalg.solve(within, self.covariance[given, own].astype(np.float64))
        return made

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Plain arrays."""
        arrays = {name: getattr(self, name) for name in ("centre", "spread", "covariance", "penalties")}
        return {"widths": np.array(self.widths, np.int64), **arrays}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[np.generic]]) -> "Joint":
        """Takes back what `state` gave."""
        centre, spread, covariance = (state[name].astype(np.float32) for name in ("centre", "spread", "covariance"))
        penalties = state["penalties"].astype(np.float64)
        return cls(tuple(state["widths"].tolist()), centre, spread, covariance, penalties)


def fit_joint(encodings: Sequence[Floats], present: Marks, kept: Marks) -> Joint:
    """From training rows: each guest's (rows, width), who has them (rows, guests), and which are `kept` (rows,).

    Kept rows have no part in the covariance; they choose the penalties.
    """
    widths = tuple(values.shape[1] for values in encodings)
    pairs = [_moments(values[own]) for values, own in zip(encodings, present.T, strict=True)]
    centre, spread = (np.concatenate(parts).astype(np.float32) for parts in zip(*pairs, strict=True))
    size = sum(widths)
    joint = Joint(widths, centre, spread, np.zeros((size, size), np.float32), np.ones(len(widths)))
    z = standardised_rows(joint, encodings, present)
    joint = Joint(widths, centre, spread, _covariance(z[~kept], present[~kept], widths), joint.penalties)
    chosen = [_penalty(joint, guest, z[kept], present[kept]) for guest in range(len(widths))]
    return Joint(widths, centre, spread, joint.covariance, np.array(chosen))


def standardised_rows(joint: Joint, encodings: Sequence[Floats | None], present: Marks) -> Floats:
    """All guests' encodings side by side, (rows, all widths), zeros where one is absent."""
    z = np.zeros((len(present), sum(joint.widths)), np.float32)
    for guest, values in enumerate(encodings):
        own = present[:, guest]
        if values is not None and own.any():
            z[own, joint.columns[guest]] = joint.standardised(values[own], guest)
    return z


def _moments(values: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each dimension; one that is constant is measured in its own unit."""
    if not len(values):
        return np.zeros(values.shape[1]), np.ones(values.shape[1])
    exact = values.astype(np.float64)
    spread = exact.std(0)
    return exact.mean(0), np.where(spread > 1e-6, spread, 1.0)


def _covariance(z: Floats, present: Marks, widths: tuple[int, ...]) -> Floats:
    """Over the rows that both of two guests have."""
    sender = np.repeat(np.arange(len(widths)), widths)
    together = np.maximum(present.T.astype(np.float64) @ present, 1.0)[np.ix_(sender, sender)]
    made = z.T.astype(np.float64) @ z / together
    if not present.all():  # parts from different rows need not fit together; the nearest that do
        values, vectors = np.linalg.eigh(made)
        made = (vectors * values.clip(min=0.0)) @ vectors.T
    return made.astype(np.float32)


def _penalty(joint: Joint, guest: int, z: Floats, present: Marks) -> float:
    """The one with which a guest is best predicted from all others on rows that the covariance has not seen."""
    whole = z[present.all(1)]
    others = [other for other in range(len(joint.widths)) if other != guest]
    if not len(whole) or not others:
        return 1.0
    errors = [
        np.square(whole[:, joint.columns[guest]] - whole @ joint.predictor(guest, others, penalty)).mean()
        for penalty in _PENALTIES
    ]
    return float(_PENALTIES[int(np.argmin(errors))])
