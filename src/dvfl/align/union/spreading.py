"""Work on a range of rows, spread over threads; for libraries that compute without holding Python's lock."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def spread(part: Callable[[int, int], Result], count: int, threads: int) -> list[Result]:
    """What `part(start, stop)` gives for stretches of 0 .. count, one a thread, in order."""
    if threads == 1 or count < threads:
        return [part(0, count)]
    edges = [count * thread // threads for thread in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(part, edges[:-1], edges[1:]))
