"""How attackers read labels off what they see of a row, from few labels of each class that they know."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dvfl.privacy.measured import accuracy
from dvfl.privacy.readers import Effort, Reader, held_out, network, ridge
from dvfl.privacy.recording import Recording, at

_ENOUGH = 5  # labels of each class, of which the first is held out


@dataclass(frozen=True)
class LabelReader:
    """A regression or a network, whichever is better on held-out known rows, for each replica."""

    read: Reader  # (replicas, rows, seen) to class scores, the logarithms of what is likely
    held: Tensor  # (replicas,): its accuracy on held-out known rows; no number where none are held out


def inferred(seen: Recording, z: Tensor, count: int, effort: Effort, purpose: str) -> tuple[Tensor, Tensor]:
    """The accuracy on the victims, in percent, of what is inferred from their `z` and from `count` known labels of each
    class; and that on held-out known rows: (replicas,) each.

    `z` is (replicas, rows, width), of the trained rows at least. Known rows have as many of each class, so what they
    make likely is weighed with the classes' shares, which attackers know.
    """
    known = seen.known_of_each_class(count, purpose)
    known = known.unflatten(1, (seen.classes, count)).mT.flatten(1)  # in turns, so that any part has all classes
    reader = label_reader(at(z, known), at(seen.y, known), seen, effort)
    scores = reader.read(z[:, seen.rows.victim]) + shares(seen).log()
    truth = seen.y[seen.rows.victim].expand(len(seen.seeds), -1)
    return accuracy(truth, scores), reader.held


def label_reader(z: Tensor, y: Tensor, seen: Recording, effort: Effort) -> LabelReader:
    """Learns from known rows `z` (replicas, known, width) and their classes `y` (replicas, known), in turns."""
    wanted = torch.nn.functional.one_hot(y, seen.classes).float()
    linear = ridge(z, wanted)
    if y.shape[1] < _ENOUGH * seen.classes:
        return LabelReader(lambda other: _likely(linear(other)), torch.full((len(y),), torch.nan, device=z.device))
    held = held_out(y.shape[1])
    deep = network(z, y, effort, seen.seeds, classes=seen.classes)  # has not trained on the held-out rows
    by_linear = accuracy(y[:, :held], ridge(z[:, held:], wanted[:, held:])(z[:, :held]))
    by_deep = accuracy(y[:, :held], deep(z[:, :held]))
    better = (by_deep > by_linear)[:, None, None]

    def read(other: Tensor) -> Tensor:
        return torch.where(better, deep(other).log_softmax(2), _likely(linear(other)))

    return LabelReader(read, torch.maximum(by_deep, by_linear))


def shares(seen: Recording) -> Tensor:
    """How frequent each class is among the trained rows: (classes,)."""
    counts = seen.y[: seen.rows.trained].bincount(minlength=seen.classes)
    return counts / counts.sum()


def guess(seen: Recording) -> tuple[float, ...]:
    """The accuracy on the victims, in percent, of an attacker that sees nothing and names the most frequent class."""
    share = (seen.y[seen.rows.victim] == shares(seen).argmax()).double().mean() * 100
    return (float(share),) * len(seen.seeds)


def _likely(scores: Tensor) -> Tensor:
    """A regression on one-hot labels estimates how likely classes are; rounded to what can be."""
    return scores.clamp(1e-3, 1).log()
