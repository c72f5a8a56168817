"""A guest learns to read labels off the gradients that it was sent, from few labels that it knows."""

import torch
from torch import Tensor

from dvfl.audit.readers.label_reader import LEARNED, LabelReader, guess
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """How many of the victims' labels it names, the mean over guests, for each number of known labels."""
    sent = [_features(guest.gradients) for guest in seen.guests if guest.gradients is not None]
    if not sent:
        return [_measured(LEARNED, count, guess(seen), channel=False) for count in effort.labels]
    readers = [LabelReader(seen, features, "gradients") for features in sent]
    found = []
    for count in effort.labels:
        each = [{way: values for way, (values, _) in one.inferred(count, effort).items()} for one in readers]
        for way in each[0]:
            told = torch.stack([one[way] for one in each]).mean(0)
            found.append(_measured(way, count, tuple(told.tolist())))
    return found


def _measured(way: str, count: int, values: tuple[float, ...], *, channel: bool = True) -> Measured:
    return Measured(
        "direct_labels",
        way,
        who="a guest",
        saw="gradients it was sent",
        known=count,
        known_of="labels of each class",
        target="labels",
        measure="balanced accuracy",
        values=values,
        channel=channel,
    )


def _features(gradients: Tensor) -> Tensor:
    """Direction and length of a row's gradients at all moments (moments, replicas, rows, latent), side by side."""
    lengths = gradients.norm(dim=-1, keepdim=True).clamp(min=1e-30)
    return torch.cat([*(gradients / lengths), *lengths.log()], 2)
