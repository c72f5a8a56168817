"""A guest infers labels from the gradients that it was sent, without learning: by their length or their direction.

Li et al., "Label leakage and protection in two-party split learning" (ICLR 2022): rows of the rarer class have the
longer gradients, and rows of a class have gradients that point the same way.
"""

import math

import torch
from torch import Tensor

from dvfl.audit.readers.label_reader import shares
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.measured import Measured, auc
from dvfl.audit.recordings.recording import Recording

_ENOUGH = 10  # known labels of each class that tell which moment of the training says most

_WAYS = ("sign", "norm", "cosine")


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """AUC on the victims: of the rarer of two classes, or of every class against the rest, in the mean.

    One label of each class is known, which is a row to compare with, and the first moment is looked at. Where more are
    known, rows are compared with all of them, and the moment is the one that tells the known ones apart best.
    """
    counts = sorted({1, *(count for count in effort.labels if count >= _ENOUGH)})
    return [_measured(seen, way, count) for way in _WAYS for count in counts]


def _measured(seen: Recording, way: str, count: int) -> Measured:
    sent = [guest.gradients for guest in seen.guests if guest.gradients is not None]
    known = seen.known_of_each_class(count, "gradients")
    areas = [_of_guest(seen, way, gradients, known) for gradients in sent]
    values = torch.stack(areas).mean(0).tolist() if areas else [0.5] * len(seen.seeds)
    of_labels = 0 if way == "norm" and count == 1 else count
    return Measured(
        "gradient_labels",
        way,
        who="a guest",
        saw="gradients it was sent",
        known=of_labels,
        known_of="labels of each class" if of_labels else "nothing",
        target="labels",
        measure="AUC",
        values=tuple(values),
        channel=bool(areas),
    )


def _of_guest(seen: Recording, way: str, gradients: Tensor, known: Tensor) -> Tensor:
    """The AUC of one guest's gradients (moments, replicas, rows, latent): (replicas,)."""
    victims = seen.y[seen.rows.victim].expand(len(seen.seeds), -1)
    count = known.shape[1] // seen.classes
    on_victims, on_known = [], []
    for moment in gradients:
        rows = known[..., None].expand(-1, -1, moment.shape[2])
        references = moment.gather(1, rows).unflatten(1, (seen.classes, count))
        score, own = _scores(seen, way, moment[:, seen.rows.victim], references)
        on_victims.append(_area(seen, victims, score))
        if count >= _ENOUGH:
            on_known.append(_area(seen, seen.y[known], own))
    if not on_known:
        return on_victims[0]
    best = torch.stack(on_known).argmax(0, keepdim=True)
    return torch.stack(on_victims).gather(0, best)[0]


def _scores(seen: Recording, way: str, sent: Tensor, references: Tensor) -> tuple[Tensor, Tensor]:
    """How much each class has for it, for gradients `sent` (replicas, rows, latent) and for the known rows themselves
    (replicas, classes, count, latent), each without itself: (replicas, rows, classes) both."""
    classes, count = references.shape[1:3]
    if way == "norm":
        rarer = torch.where(shares(seen) <= 1 / classes, 1.0, -1.0)
        return sent.norm(dim=2, keepdim=True) * rarer, references.flatten(1, 2).norm(dim=2, keepdim=True) * rarer
    feature = _directions if way == "cosine" else _signs
    own = feature(references)
    total = own.sum(2)  # (replicas, classes, latent)
    each = own.flatten(1, 2) @ total.mT  # (replicas, known, classes)
    themselves = own.square().sum(3).flatten(1)[..., None]
    same = torch.eye(classes, device=sent.device).repeat_interleave(count, 0)
    without = (each - themselves * same) / (count - same).clamp(min=1)
    return feature(sent) @ total.mT / count, without


def _directions(gradients: Tensor) -> Tensor:
    """Products of these are cosines."""
    return torch.nn.functional.normalize(gradients, dim=-1, eps=1e-30)


def _signs(gradients: Tensor) -> Tensor:
    """Products of these rise with the share of dimensions whose signs are equal; a zero is half of it."""
    return gradients.sign() / math.sqrt(gradients.shape[-1])


def _area(seen: Recording, y: Tensor, scores: Tensor) -> Tensor:
    """The AUC of class scores (replicas, rows, classes) for classes (replicas, rows): (replicas,)."""
    if seen.classes == 2:
        rarer = int(shares(seen).argmin())
        return auc(y == rarer, scores[..., rarer])
    there = [label for label in range(seen.classes) if (y == label).any(1).all()]
    return torch.stack([auc(y == label, scores[..., label]) for label in there]).mean(0)
