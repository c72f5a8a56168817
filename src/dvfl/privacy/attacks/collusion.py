"""A host and a guest put together what they have, to reconstruct another guest's columns.

The host holds the victim guest's encodings, the other guest its own columns of the same rows, which may say something
too. Weng et al. (2020) attack vertical protocols as one participant that is curious; here one joins the host. Every
guest is a victim once, its neighbour the colluder.
"""

from dataclasses import replace

import torch
from torch import Tensor

from dvfl.privacy.alike import Alike, by_network, by_ridge, explained
from dvfl.privacy.attacks.inversion import NETWORK_FROM
from dvfl.privacy.measured import Control, Measured
from dvfl.privacy.readers import Effort, best_ridge
from dvfl.privacy.recording import Recording, at

_TARGET, _ENCODINGS, _COLUMNS = "another guest's columns", "encodings of one guest", "columns of another guest"

_BOTH = "a host and a guest", f"{_ENCODINGS}, {_COLUMNS}"
_WEIGHTS = (0.1, 0.3, 1.0)  # of the colluding guest's columns beside encodings


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """R2 of the victims' columns with the colluding guest's columns, without them, and from them alone."""
    if len(seen.guests) < 2:
        return []  # nobody to collude with
    neighbours = [*seen.guests[1:], seen.guests[0]]
    columns = [guest.x.expand(len(seen.seeds), -1, -1) for guest in neighbours]
    by_columns = seen.with_encodings(columns)
    pairs = zip(seen.guests, columns, strict=True)
    by_both = seen.with_encodings(torch.cat([_evened(guest.z), _evened(beside)], 2) for guest, beside in pairs)
    figures = []
    for count in (count for count in effort.known if count <= seen.rows.pool):
        known = seen.known(count, "collusion")
        found: list[tuple[str, str, str, tuple[float, ...], Control]] = [
            ("ridge, together", *_BOTH, _together(seen, columns, known), ""),
            ("ridge, host alone", "a host", _ENCODINGS, explained(seen, known, by_ridge), ""),
            ("ridge, guest alone", "a guest", _COLUMNS, explained(by_columns, known, by_ridge), "nothing seen"),
        ]
        if count >= NETWORK_FROM:
            found.append(("network, together", *_BOTH, explained(by_both, known, by_network(effort)), ""))
        figures += [
            Measured("collusion", way, who, saw, count, "columns", _TARGET, "R2", values, control)
            for way, who, saw, values, control in found
        ]
    return figures


def _together(seen: Recording, columns: list[Tensor], known: Tensor) -> tuple[float, ...]:
    """Ridge from both side by side; the known rows say how much weight the colluding guest's columns deserve."""
    shares = []
    for guest, beside in zip(seen.guests, columns, strict=True):
        pairs = [torch.cat([_evened(guest.z), weight * _evened(beside)], 2) for weight in _WEIGHTS]

        def guess(group: Alike, known: Tensor, pairs: list[Tensor] = pairs) -> Tensor:
            rows = group.rows.victim
            views = [(group.known(known)[0], group.victims), *((at(pair, known), pair[:, rows]) for pair in pairs)]
            return best_ridge(views, group.known(known)[1], scaled=False)

        alone = replace(guest, z=_evened(guest.z), gradients=None)
        shares.append(explained(replace(seen, guests=(alone,)), known, guess))
    return tuple(sum(each) / len(each) for each in zip(*shares, strict=True))


def _evened(values: Tensor) -> Tensor:
    """Columns (replicas, rows, width) scaled to one spread over all rows, which colluders hold; silent ones stay so."""
    spread = values.std(1, keepdim=True, correction=0)
    return values / spread.maximum(spread.mean(2, keepdim=True) * 0.3).clamp(min=1e-6)
