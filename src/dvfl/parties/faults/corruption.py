"""Wrong encodings: what a faulty guest sends in the place of its own."""

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

How = Literal["scale", "sign", "permute", "noise"]
Phase = Literal["hosts", "owner"]
HOWS: tuple[How, ...] = get_args(How)
PHASES: tuple[Phase, ...] = get_args(Phase)
SCALE = 10.0


@dataclass(frozen=True)
class Corruption:
    """One guest that sends wrong encodings in one phase."""

    how: How
    phase: Phase  # hosts: what hosts train on; owner: what the owner trains on
    guest: str

    def __str__(self) -> str:
        return f"corrupt:{self.how}:{self.phase}:{self.guest}"


def corrupted(code: Tensor, how: How, order: Tensor, noise: Tensor) -> Tensor:
    """Wrong encodings (.., rows, latent) in the place of the right ones.

    `order` (rows,) is a shuffle of the rows. `noise` (rows, latent) is standard normal; it is made as strong as the
    encodings by the standard deviation over rows and latent of each leading element.
    """
    match how:
        case "scale":
            return code * SCALE
        case "sign":
            return -code
        case "permute":
            return code.index_select(-2, order)
        case "noise":
            # correction=0: a single number deviates by nothing, not by NaN.
            return code + noise * code.std(dim=(-2, -1), correction=0, keepdim=True)
