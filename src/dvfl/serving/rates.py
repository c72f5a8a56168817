"""How often each may ask: a bucket of requests that fills at a steady rate."""

from dataclasses import dataclass

_KEPT = 10_000  # buckets at most; whoever has been quiet longest is forgotten, which costs them nothing


@dataclass
class _Bucket:
    left: float
    at: float


class Rates:
    """One bucket for each token or address; it holds one second's requests, and one at least."""

    def __init__(self, per_second: float) -> None:
        self._rate, self._most = per_second, max(1.0, per_second)
        self._buckets: dict[str, _Bucket] = {}

    def take(self, who: str, now: float) -> float:
        """Takes one request out; 0, or the seconds until there is one again."""
        bucket = self._buckets.pop(who, None) or _Bucket(self._most, now)
        bucket.left = min(self._most, bucket.left + max(0.0, now - bucket.at) * self._rate)
        bucket.at = now
        self._buckets[who] = bucket  # the last in order: the first is the quietest
        while len(self._buckets) > _KEPT:
            self._buckets.pop(next(iter(self._buckets)))
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0
