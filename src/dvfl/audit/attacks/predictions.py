"""Someone who sees the owner's predictions guesses the guests' columns behind them.

Luo et al. (2021) infer one party's features from a vertical model's confidence scores and the model itself, by solving
for them or with a generator that learns to. Here the model is not known; the attacker learns a map from probabilities
to columns on rows of which it knows both.
"""

import torch
from torch import Tensor

from dvfl.audit.attacks.inversion import NETWORK_FROM
from dvfl.audit.readers.alike import by_network, by_nothing, by_ridge, explained
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.measured import Control, Measured
from dvfl.audit.recordings.recording import Recording

_LEAST = 1e-7  # of a probability as a prediction gives it


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """R2 of the victims' columns, beside that of guessing the mean of the known rows."""
    shown = seen.with_encodings([_shown(seen.outputs)] * len(seen.guests))
    ways = {"ridge": by_ridge, "network": by_network(effort), "mean of known rows": by_nothing}
    figures = []
    for count in (count for count in effort.known if count <= seen.rows.pool):
        known = seen.known(count, "predictions")
        for name, way in ways.items():
            if name == "network" and count < NETWORK_FROM:
                continue
            control: Control = "nothing seen" if way is by_nothing else ""
            figures.append(
                Measured(
                    "predictions",
                    name,
                    "a user of predictions",
                    "nothing" if control else "class probabilities" if seen.numbers is None else "predicted numbers",
                    count,
                    "columns",
                    "a guest's columns",
                    "R2",
                    explained(shown, known, way),
                    control,
                )
            )
    return figures


def _shown(outputs: Tensor) -> Tensor:
    """Probabilities and their logarithms, (replicas, rows, 2 x classes), or predicted numbers as they are."""
    if outputs.shape[2] == 1:
        return outputs
    p = torch.softmax(outputs, 2)
    return torch.cat([p, p.clamp(min=_LEAST).log()], 2)
