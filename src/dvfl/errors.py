"""The two ways a command ends badly: the user can mend it, or the run failed."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """What the user can mend; one line that says what was wrong, where, and what would be right. Exit status 2."""


class RunFailed(Exception):
    """A run that started and could not finish. Exit status 1."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest known name, and otherwise the list of them all."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(names)}"
