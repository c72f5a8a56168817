"""How attackers read labels off what they see of rows, from few labels of each class that they know."""

import torch
from torch import Tensor

from dvfl.audit.readers.neighbours import Neighbours
from dvfl.audit.readers.readers import Effort, Reader, deviation, held_out, network, ridge
from dvfl.audit.recordings.measured import balanced_accuracy
from dvfl.audit.recordings.recording import Recording, at

LEARNED = "nearest mean, ridge or network"  # whichever is best on known rows that are held out, replica by replica
SPREAD = "neighbours"  # labels spread from row to row

_ENOUGH = 5  # labels of each class, of which one is held out


class LabelReader:
    """What is seen of trained rows, `z` (replicas, rows, width), ready to be read with any number of known labels."""

    def __init__(self, seen: Recording, z: Tensor, purpose: str) -> None:
        self._seen, self._purpose = seen, purpose
        trained = z[:, : seen.rows.trained].float()  # no label is needed to see how they lie
        spread = deviation(trained).clamp(min=1e-6)
        self._z = (trained - trained.mean(1, keepdim=True)) / spread
        self._neighbours = Neighbours(trained)

    def inferred(self, count: int, effort: Effort) -> dict[str, tuple[Tensor, Tensor]]:
        """By way, the balanced accuracy on the victims of what `count` known labels of each class tell, and that on
        known rows that are held out, no number where there are too few: (replicas,) each, in percent."""
        known = self._seen.known_of_each_class(count, self._purpose)
        y = at(self._seen.y, known)
        return {LEARNED: self._learned(known, y, effort), SPREAD: self._spread(known, y)}

    def _learned(self, known: Tensor, y: Tensor, effort: Effort) -> tuple[Tensor, Tensor]:
        read, held = _learned_reader(at(self._z, known), y, self._seen, effort)
        return self._on_victims(read(self._z[:, self._seen.rows.victim])), held

    def _spread(self, known: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        classes = self._seen.classes
        scores = self._neighbours.spread(known, y, classes)
        held = torch.full((len(y),), torch.nan, dtype=torch.float64, device=y.device)
        if y.shape[1] >= _ENOUGH * classes:
            out, kept = held_out(y.shape[1], y.device)
            judged = self._neighbours.spread(known[:, kept], y[:, kept], classes)
            held = balanced_accuracy(y[:, out], at(judged, known[:, out]))
        return self._on_victims(scores[:, self._seen.rows.victim]), held

    def _on_victims(self, scores: Tensor) -> Tensor:
        truth = self._seen.y[self._seen.rows.victim].expand(len(self._seen.seeds), -1)
        return balanced_accuracy(truth, scores)


def shares(seen: Recording) -> Tensor:
    """How frequent each class is among the trained rows: (classes,)."""
    counts = seen.y[: seen.rows.trained].bincount(minlength=seen.classes)
    return counts / counts.sum()


def guess(seen: Recording) -> tuple[float, ...]:
    """The balanced accuracy, in percent, of an attacker that sees nothing and names one class for all."""
    return (100 / seen.classes,) * len(seen.seeds)


def _learned_reader(z: Tensor, y: Tensor, seen: Recording, effort: Effort) -> tuple[Reader, Tensor]:
    """Learns from known rows (replicas, known, width) and their classes: a reader, and its balanced accuracy on
    held-out rows."""
    if y.shape[1] < _ENOUGH * seen.classes:
        return _nearest(z, y, seen.classes), torch.full((len(y),), torch.nan, dtype=torch.float64, device=z.device)
    held, kept = held_out(y.shape[1], z.device)
    test, rest, rest_y = z[:, held], z[:, kept], y[:, kept]
    deep = network(z, y, effort, seen.seeds, classes=seen.classes)  # trains on the rest alone
    chosen_from = [_nearest(z, y, seen.classes), _ridge(z, y, seen.classes), deep]
    judged = [_nearest(rest, rest_y, seen.classes), _ridge(rest, rest_y, seen.classes), deep]
    scores = torch.stack([balanced_accuracy(y[:, held], reader(test)) for reader in judged])  # (readers, replicas)
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
        return -torch.cdist(other, means)

    return read


def _ridge(z: Tensor, y: Tensor, classes: int) -> Reader:
    """A regression on one-hot labels."""
    return ridge(z, torch.nn.functional.one_hot(y, classes).float())
