"""The algorithms of the comparison and their presets.

Uses `simulation` and what is below it; `decoupled`, `split` and `fedvs` hold the algorithms. Start reading at
`registry`, which names every one, then `presets`.
"""

from dvfl.strategies.registry import STRATEGIES, Strategy

__all__ = ["STRATEGIES", "Strategy"]
