"""What split networks cannot be trained with, said before anything is trained."""

import numpy as np

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.settings.training import SplitSettings
from dvfl.simulation.labelled_copies import check_copies
from dvfl.strategies.split.gradient_defence import check_defence


def check_trainable(data: VerticalData, s: SplitSettings) -> None:
    """Refuses data and settings that nothing can be made of."""
    if data.classes is not None and len(np.unique(data.y_train)) < 2:
        raise UserError(f"{data.name}: the labels have one class only; at least two are needed")
    for name in ("batch", "epochs"):
        if getattr(s, name) < 1:
            raise UserError(f"{name} {getattr(s, name)}: at least 1 is right")
    check_copies(data, s.copies)
    if s.retries < 0:
        raise UserError(f"retries {s.retries}: 0 or more is right")
    for name in ("dropout", "guest_dropout", "smoothing", "guest_noise", "validation"):
        if not 0 <= getattr(s, name) < 1:
            raise UserError(f"{name} {getattr(s, name)}: from 0 to below 1 is right")
    check_defence(s)
    if s.inflated is not None and not 0 <= s.inflated < len(data.guests):
        raise UserError(f"inflated {s.inflated}: a guest's number, from 0 to {len(data.guests) - 1}, is right")
    if not 0 < s.inflation < np.inf:
        raise UserError(f"inflation {s.inflation}: above 0 is right")
