"""Encodings with something else beside them."""

from dataclasses import replace

import pytest
import torch
from made_up import linear, made_up

from dvfl.audit.readers.side_by_side import ridge_with


def test_guests_attacked_together_are_attacked_as_each_would_be_alone() -> None:
    """Some as wide as each other, what stands beside them not."""
    seen = made_up(lambda x, draw: linear(x, draw)[:, :3], seeds=(0, 1), columns=(6, 5, 6))
    beside = [torch.cat([other.z for other in seen.guests if other is not guest], 2) for guest in seen.guests]
    beside[2] = seen.guests[0].x.expand(2, -1, -1)[..., :4]
    known = seen.known(100, "a test")
    alone = [
        ridge_with(replace(seen, guests=(guest,)), [more], known)
        for guest, more in zip(seen.guests, beside, strict=True)
    ]
    together = torch.tensor(alone).mean(0).tolist()
    assert ridge_with(seen, beside, known) == pytest.approx(together, abs=1e-3)
