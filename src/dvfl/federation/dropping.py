"""Messages that were not believed: counted by sender, and logged ever more seldom."""

from collections import Counter
from collections.abc import Callable


class Dropped:
    """Says of each sender the first dropped message, the second, fourth, eighth ..: a flood does not fill a disk."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._counts: Counter[str] = Counter()

    def __call__(self, sender: str, reason: object) -> None:
        self._counts[sender] += 1
        count = self._counts[sender]
        if count & (count - 1) == 0:
            self._log(f"dropped a message from {sender}: {reason} ({count} so far)")
