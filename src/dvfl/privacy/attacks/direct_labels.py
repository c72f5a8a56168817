"""A guest learns to read labels off the gradients that it was sent, from few labels that it knows."""

import torch
from torch import Tensor

from dvfl.privacy.label_reader import WAY, guess, inferred
from dvfl.privacy.measured import Measured
from dvfl.privacy.readers import Effort
from dvfl.privacy.recording import Recording


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """Accuracy on the victims, the mean over guests, for each number of known labels."""
    sent = [_features(guest.gradients) for guest in seen.guests if guest.gradients is not None]
    found = []
    for count in effort.labels:
        values = guess(seen)
        if sent:
            each = [inferred(seen, features, count, effort, "gradients")[0] for features in sent]
            values = tuple(torch.stack(each).mean(0).tolist())
        found.append(
            Measured(
                "direct_labels",
                WAY,
                who="a guest",
                saw="gradients it was sent",
                known=count,
                known_of="labels of each class",
                target="labels",
                measure="accuracy",
                values=values,
                channel=bool(sent),
            )
        )
    return found


def _features(gradients: Tensor) -> Tensor:
    """Direction and length of a row's gradients at all moments (moments, replicas, rows, latent), side by side."""
    lengths = gradients.norm(dim=-1, keepdim=True).clamp(min=1e-30)
    return torch.cat([*(gradients / lengths), *lengths.log()], 2)
