"""SplitNN whose host lets a missing guest fade: its last batch stands in, weaker with every round."""

import torch
from torch import Tensor

from dvfl.strategies.registry import split
from dvfl.strategies.split.splitnn import SplitNN

KEPT = 0.8  # of the last batch, a round


class Fading(SplitNN):
    """What stands in for missing messages fades."""

    def __init__(self) -> None:
        super().__init__("buffer")

    def _complete(self, piece: Tensor, there: Tensor, substitute: Tensor) -> Tensor:
        substitute.copy_(torch.where(there, piece, KEPT * substitute))
        return substitute.clone()


FADING = split(Fading)
