"""How often a row's encoding leaves its guest, and which of these times an attacker puts side by side."""

from collections.abc import Sequence

import torch
from torch import Tensor

_LATE = 5  # of the last noisy releases of a row that are averaged beside all of them
_EARLY = (1, 5)  # which pushes without noise are kept: encoders change most at first, and tell other things of a row


def releases(guest_epochs: int, period: int) -> int:
    """How often a real guest sends each row at least: every push, and the sweep."""
    return guest_epochs // period + 1


def kept(epoch: int, guest_epochs: int, period: int, *, noisy: bool) -> bool:
    """Whether an epoch, counted from 1, has pushes that tell more of rows than those of the last, which are recorded
    anyway."""
    number, rest = divmod(epoch, period)
    return rest == 0 and (noisy or (number in _EARLY and epoch < guest_epochs))


def earlier(pushed: Sequence[Tensor], *, noisy: bool) -> Tensor | None:
    """Means of all noisy pushes, and of the last ones; others as they were: (some, ..); None where there is none."""
    if not pushed:
        return None
    if not noisy:
        return torch.stack(list(pushed))
    return torch.stack([sum(those[1:], those[0]) / len(those) for those in (pushed, pushed[-_LATE:])])
