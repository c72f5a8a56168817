"""A curious host reconstructs a guest's columns from its encodings.

He et al. (2019) invert what one party of a split network sends to another, with a network learned from pairs of inputs
and encodings, and with a surrogate of the sender's part where no pairs can be had. Here a host has come to know the
columns of some rows, whose encodings it holds anyway. Ways differ in what it uses beside them: nothing, all the other
encodings that it holds of the guest, what other guests sent of the same rows, or public rows of the same kind (the test
rows' columns, without their encodings).
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from dvfl.audit.readers.alike import Alike, Guess, by_network, by_ridge, explained
from dvfl.audit.readers.priors import Prior, posterior, principal
from dvfl.audit.readers.readers import Effort, best_ridge
from dvfl.audit.readers.side_by_side import network_with, ridge_with
from dvfl.audit.readers.surrogates import Surrogate
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording
from dvfl.strategies import STRATEGIES

NETWORK_FROM = 50  # known rows; with fewer, networks learn less than ridge
_FEW = 500  # known rows from which on all encodings that a host holds tell ridge nothing that known ones do not


def measure(seen: Recording, effort: Effort, *, with_others: bool = True) -> list[Measured]:
    """R2 of the victims' columns, with every way and every number of known rows that the pool has.

    `with_others`: other guests' encodings serve too.
    """
    ways = _ways(effort)
    others = _of_others(seen) if with_others else None
    figures = []
    for count in (count for count in effort.known if count <= seen.rows.pool):
        known = seen.known(count, "inversion")
        for name, way in ways.items():
            if (name == "network" and count < NETWORK_FROM) or (name == _BY_ALL and count >= _FEW):
                continue
            figures.append(_measured(name, count, explained(seen, known, way)))
        # With 10 known rows, what others sent made every federation of two small audits harder to invert.
        if others is not None and count >= NETWORK_FROM:
            figures.append(_measured(_RIDGE_OTHERS, count, ridge_with(seen, others, known)))
        if others is not None and count >= _FEW:
            figures.append(_measured(_NETWORK_OTHERS, count, network_with(seen, others, known, effort)))
    return figures


def strongest(figures: Iterable[Measured]) -> list[Measured]:
    """For every number of known rows, and every control, the way with the largest mean."""
    best: dict[tuple[str, int], Measured] = {}
    for figure in figures:
        key = figure.control, figure.known
        if key not in best or figure.mean > best[key].mean:
            best[key] = figure
    return list(best.values())


def _measured(way: str, count: int, values: tuple[float, ...]) -> Measured:
    saw, target = _SAW.get(way, "encodings of one guest"), "a guest's columns"
    return Measured("inversion", way, "a host", saw, count, "columns", target, "R2", values)


def _of_others(seen: Recording) -> list[Tensor] | None:
    """What all others sent, for each guest; None where there is nobody else, or a host sees sums alone."""
    if len(seen.guests) < 2 or STRATEGIES[seen.strategy].sums:
        return None
    return [torch.cat([other.z for other in seen.guests if other is not guest], 2) for guest in seen.guests]


_BY_ALL = "ridge, all encodings"
_RIDGE_OTHERS, _NETWORK_OTHERS = "ridge, all guests", "network, all guests"
_SAW = {
    _BY_ALL: "all encodings of one guest",
    _RIDGE_OTHERS: "encodings of all guests",
    _NETWORK_OTHERS: "encodings of all guests",
    "public rows": "all encodings of one guest, and public rows of its kind",
    "surrogate encoder": "encodings of one guest, and public rows of its kind",
}
_POWERS = (0.0, 0.25, 0.5)  # of principal variances that are divided by: as they are, half whitened, whitened


def _ways(effort: Effort) -> dict[str, Guess]:
    # What depends on public rows alone is made once for all numbers of known rows.
    priors: dict[tuple[int, ...], Prior] = {}
    surrogates: dict[tuple[int, ...], Surrogate] = {}

    def by_all_encodings(group: Alike, known: Tensor) -> Tensor:
        z, x = group.known(known)
        return best_ridge(_leading(z, group.victims, _held(group)), x, scaled=False)

    def by_public_rows(group: Alike, known: Tensor) -> Tensor:
        if group.members not in priors:
            priors[group.members] = Prior.of(group.x[:, group.rows.test]).repeated(group.each)
        return posterior(priors[group.members], *group.known(known), group.victims, _held(group))

    def by_surrogate(group: Alike, known: Tensor) -> Tensor:
        if group.members not in surrogates:
            surrogates[group.members] = Surrogate.learned(group.x[:, group.rows.test], group.z.shape[2], effort)
        return surrogates[group.members].guess(group, known)

    return {
        "ridge": by_ridge,
        "network": by_network(effort),
        _BY_ALL: by_all_encodings,
        "public rows": by_public_rows,
        "surrogate encoder": by_surrogate,
    }


def _held(group: Alike) -> Tensor:
    """All encodings that a host holds after the training: (stack, trained rows, seen)."""
    return group.z[:, : group.rows.trained]


def _leading(known: Tensor, others: Tensor, every: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Encodings along the leading principal directions of `every` one held: more and more of them, more or less
    whitened."""
    centre, variances, directions = principal(every.double())
    known, others = ((z.double() - centre) @ directions for z in (known, others))
    floor = (variances.mean(2, keepdim=True) * 1e-6).clamp(min=1e-12)  # encodings may all be alike
    kept = sorted({min(1 << power, known.shape[2]) for power in range(1, 12)})
    for power in _POWERS:
        scale = variances.maximum(floor) ** power
        for count in kept:
            yield known[..., :count] / scale[..., :count], others[..., :count] / scale[..., :count]
