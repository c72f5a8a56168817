"""A host and a guest put together what they have, to reconstruct another guest's columns.

The host holds the victim guest's encodings, the other guest its own columns of the same rows, which may say something
too. Weng et al. (2020) attack vertical protocols as one participant that is curious; here one joins the host. Every
guest is a victim once, its neighbour the colluder.
"""

from dvfl.audit.attacks.inversion import NETWORK_FROM
from dvfl.audit.readers.alike import by_ridge, explained
from dvfl.audit.readers.readers import Effort
from dvfl.audit.readers.side_by_side import network_with, ridge_with
from dvfl.audit.recordings.measured import Control, Measured
from dvfl.audit.recordings.recording import Recording

_TARGET, _ENCODINGS, _COLUMNS = "another guest's columns", "encodings of one guest", "columns of another guest"

_BOTH = "a host and a guest", f"{_ENCODINGS}, {_COLUMNS}"


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """R2 of the victims' columns with the colluding guest's columns, without them, and from them alone."""
    if len(seen.guests) < 2:
        return []  # nobody to collude with
    neighbours = [*seen.guests[1:], seen.guests[0]]
    columns = [guest.x.expand(len(seen.seeds), -1, -1) for guest in neighbours]
    by_columns = seen.with_encodings(columns)
    figures = []
    for count in (count for count in effort.known if count <= seen.rows.pool):
        known = seen.known(count, "collusion")
        found: list[tuple[str, str, str, tuple[float, ...], Control]] = [
            ("ridge, together", *_BOTH, ridge_with(seen, columns, known), ""),
            ("ridge, host alone", "a host", _ENCODINGS, explained(seen, known, by_ridge), ""),
            ("ridge, guest alone", "a guest", _COLUMNS, explained(by_columns, known, by_ridge), "nothing seen"),
        ]
        if count >= NETWORK_FROM:
            found.append(("network, together", *_BOTH, network_with(seen, columns, known, effort), ""))
        figures += [
            Measured("collusion", way, who, saw, count, "columns", _TARGET, "R2", values, control)
            for way, who, saw, values, control in found
        ]
    return figures
