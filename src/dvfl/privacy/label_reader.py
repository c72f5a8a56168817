"""How attackers read labels off what they see of rows, from few labels of each class that they know."""

import torch
from torch import Tensor

from dvfl.privacy.measured import accuracy
from dvfl.privacy.readers import Effort, Reader, held_out, network, ridge
from dvfl.privacy.recording import Recording, at

WAY = "nearest mean, ridge or network"  # whichever is best on known rows that are held out, replica by replica

_ENOUGH = 5  # labels of each class, of which one is held out


def inferred(seen: Recording, z: Tensor, count: int, effort: Effort, purpose: str) -> tuple[Tensor, Tensor]:
    """The accuracy on the victims, in percent, of what is inferred from their `z` and from `count` known labels of each
    class; and that on known rows that are held out, no number where there are too few: (replicas,) each.

    `z` is (replicas, rows, width), of the trained rows at least. Known rows are as many of each class, so what they
    make likely is weighed with the classes' shares, which attackers know.
    """
    known = seen.known_of_each_class(count, purpose)
    trained = z[:, : seen.rows.trained]  # no label is needed to see how they spread
    spread = trained.std(1, keepdim=True, correction=0).clamp(min=1e-6)
    z = (z - trained.mean(1, keepdim=True)) / spread
    read, held = _label_reader(at(z, known), at(seen.y, known), seen, effort)
    scores = read(z[:, seen.rows.victim]) + shares(seen).log()
    truth = seen.y[seen.rows.victim].expand(len(seen.seeds), -1)
    return accuracy(truth, scores), held


def shares(seen: Recording) -> Tensor:
    """How frequent each class is among the trained rows: (classes,)."""
    counts = seen.y[: seen.rows.trained].bincount(minlength=seen.classes)
    return counts / counts.sum()


def guess(seen: Recording) -> tuple[float, ...]:
    """The accuracy on the victims, in percent, of an attacker that sees nothing and names the most frequent class."""
    share = (seen.y[seen.rows.victim] == shares(seen).argmax()).double().mean() * 100
    return (float(share),) * len(seen.seeds)


def _label_reader(z: Tensor, y: Tensor, seen: Recording, effort: Effort) -> tuple[Reader, Tensor]:
    """Learns from known rows (replicas, known, width) and their classes: a reader, and its accuracy on held-out rows.

    Class scores that it gives are logarithms of how likely classes are.
    """
    if y.shape[1] < _ENOUGH * seen.classes:
        return _nearest(z, y, seen.classes), torch.full((len(y),), torch.nan, device=z.device)
    held, kept = held_out(y.shape[1], z.device)
    test, rest, rest_y = z[:, held], z[:, kept], y[:, kept]
    deep = _network(z, y, seen, effort)  # trains on the rest alone
    chosen_from = [_nearest(z, y, seen.classes), _ridge(z, y, seen.classes), deep]
    judged = [_nearest(rest, rest_y, seen.classes), _ridge(rest, rest_y, seen.classes), deep]
    scores = torch.stack([accuracy(y[:, held], reader(test)) for reader in judged])  # (readers, replicas)
    best = scores.argmax(0)

    def read(other: Tensor) -> Tensor:
        made = torch.stack([reader(other) for reader in chosen_from], 1)
        return made[torch.arange(len(made), device=made.device), best]

    return read, scores.amax(0)


def _nearest(z: Tensor, y: Tensor, classes: int) -> Reader:
    """The distance to the mean of each class, as if columns were independent and spread alike."""
    marks = torch.nn.functional.one_hot(y, classes).float()
    means = marks.mT @ z / marks.sum(1)[..., None].clamp(min=1)

    def read(other: Tensor) -> Tensor:
        return -torch.cdist(other, means).square() / 2

    return read


def _ridge(z: Tensor, y: Tensor, classes: int) -> Reader:
    """A regression on one-hot labels estimates how likely classes are; limited to what can be."""
    linear = ridge(z, torch.nn.functional.one_hot(y, classes).float())

    def read(other: Tensor) -> Tensor:
        return linear(other).clamp(1e-3, 1).log()

    return read


def _network(z: Tensor, y: Tensor, seen: Recording, effort: Effort) -> Reader:
    deep = network(z, y, effort, seen.seeds, classes=seen.classes)

    def read(other: Tensor) -> Tensor:
        return deep(other).log_softmax(2)

    return read
