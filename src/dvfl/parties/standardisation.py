"""What an owner does to encodings and to a regression's labels, so that one learning rate fits all units."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def moments(encodings: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each dimension (rows, dimensions); what never came (no number) has no part in them."""
    known = ~encodings.isnan()
    count = known.sum(0).clamp_(min=1)
    centre = encodings.nan_to_num(nan=0.0).sum(0) / count
    spread = (encodings - centre).square_().nan_to_num_(nan=0.0).sum(0).div_(count).sqrt_()
    # A dead dimension (never active on training rows) carries nothing: dividing by 1 leaves it at zero.
    return centre, torch.where(spread > 1e-6, spread, torch.ones_like(spread))


def widened(centre: Tensor, spread: Tensor, partial: Tensor) -> Tensor:
    """The deviations of `moments` as far as encodings with guests hidden, (rows, dimensions), are from the same centre.

    A dimension that rows with all guests hardly move may be moved by those alone; in its own deviations their values
    would be in the thousands, and no learning rate fits them.
    """
    far = (partial - centre).square_().nan_to_num_(nan=0.0).mean(0).sqrt_()
    return torch.maximum(spread, far)


def standardised_targets(labels: NDArray[np.generic]) -> tuple[NDArray[np.float32], float, float]:
    """A regression's targets with mean 0 and deviation 1, so that one learning rate fits all units; and both."""
    numbers = labels.astype(np.float64)
    centre, spread = float(numbers.mean()), float(numbers.std()) or 1.0
    return ((numbers - centre) / spread).astype(np.float32), centre, spread
