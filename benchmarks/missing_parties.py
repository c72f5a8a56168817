"""placeholder"""

from itertools import combinations

import torch

from dvfl.strategies.dvfl import Dvfl
from dvfl.strategies.endtoend import EndToEnd

Scores = dict[str, list[float]]  # test accuracy of each seed, by who is there


def guest_subsets(guests: int, count: int | None = None) -> list[str]:
    """All that are not empty, largest first, as the numbers from 1 of those that are there; those of one size."""
    sizes = range(guests, 0, -1) if count is None else (count,)
    return ["".join(map(str, one)) for size in sizes for one in combinations(range(1, guests + 1), size)]


def scores(training: Dvfl | EndToEnd) -> Scores:
    """Of a training that is finished, with every subset of guests, and without each host."""
    y = torch.from_numpy(training.data.y_test)

    def accuracy(outputs: torch.Tensor) -> list[float]:
        right: list[float] = ((outputs.argmax(-1).cpu() == y).double().mean(1) * 100).tolist()
        return right

    made = {
        f"guests {shown}": accuracy(training.outputs([int(guest) - 1 for guest in shown]))
        for shown in guest_subsets(len(training.data.guests))
    }
    if isinstance(training, Dvfl):
        hosts = range(training.host_count)
        for gone in hosts:
            made[f"without host {gone + 1}"] = accuracy(training.outputs(hosts=[h for h in hosts if h != gone]))
    return made
