"""Messages that were not believed: counted by sender, and logged ever more seldom."""

from collections import Counter
from collections.abc import Callable


class Dropped:
    """Says of each sender the first dropped message, the second, fourth, eighth ..: a flood does not fill a disk."""

    def __init__(self, totals: dict[str, int], log: Callable[[str], None]) -> None:
        self._totals, self._log = totals, log
        self._by_sender: Counter[str] = Counter()

    def __call__(self, sender: str, reason: object) -> None:
        self._totals["messages_dropped"] += 1
        self._by_sender[sender] += 1
        count = self._by_sender[sender]
        if count & (count - 1) == 0:
            self._log(f"dropped a message from {sender}: {reason} ({count} so far)")
