"""A host that was given no labels learns them from the guests' encodings and a few labels that it came to know.

Fu et al. (2022) complete a party's own part of a vertical model with a few labels and so infer all others. The host of
a split network is told the labels: there is nothing to find out, and no figure. In DVFL hosts have none; in FedOnce
nobody but the owner gets encodings, and the figure is that of an onlooker without labels.
"""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dvfl.privacy.measured import Measured, accuracy
from dvfl.privacy.readers import Effort, Reader, network, ridge
from dvfl.privacy.recording import Recording, at

_COMPARED_FROM = 5  # labels of each class from which on some are held out to choose by


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """Accuracy on the victims' labels by every number of known ones, beside that of one guess for all."""
    if seen.strategy != "dvfl" and not seen.strategy.startswith("fedonce"):
        return []
    who = "a host" if seen.strategy == "dvfl" else "an onlooker without labels"
    joint, y = seen.joint(), seen.y[seen.rows.victim].expand(len(seen.seeds), -1)
    common = y[0].bincount(minlength=seen.classes).max() / y.shape[1] * 100
    guess = (float(common),) * len(seen.seeds)
    figures = [
        Measured(
            "probing", "most common class", who, "nothing", 0, "nothing", "labels", "accuracy", guess, "nothing seen"
        )
    ]
    victims, saw, of = joint[:, seen.rows.victim], "encodings of all guests", "labels of each class"
    for count in effort.labels:
        known = seen.known_of_each_class(count, "probing")
        z, labels = at(joint, known), at(seen.y, known)
        way, scores = _read(z, labels, victims, count, seen, effort)
        values = tuple(accuracy(y, scores).tolist())
        figures.append(Measured("probing", way, who, saw, count, of, "labels", "accuracy", values))
    return figures


def _read(z: Tensor, y: Tensor, others: Tensor, count: int, seen: Recording, effort: Effort) -> tuple[str, Tensor]:
    """Class scores of `others` by ridge or a network, whichever does better on a fifth of the known rows."""
    by_ridge = _ridge(z, y, seen.classes)(others)
    if count < _COMPARED_FROM:
        return "ridge", by_ridge
    held = (torch.arange(y.shape[1], device=y.device) % count) < count // _COMPARED_FROM  # so many of each class
    kept, out = (~held).nonzero().flatten(), held.nonzero().flatten()

    def learned(z: Tensor, y: Tensor) -> Reader:
        return network(z, y, effort, seen.seeds, classes=seen.classes)

    shown = z[:, kept], y[:, kept]
    first, second = (
        accuracy(y[:, out], reader(z[:, out])) for reader in (_ridge(*shown, seen.classes), learned(*shown))
    )
    better = (second > first)[:, None, None]
    return "ridge or network", torch.where(better, learned(z, y)(others), by_ridge)


def _ridge(z: Tensor, y: Tensor, classes: int) -> Reader:
    return ridge(z, one_hot(y, classes).float())
