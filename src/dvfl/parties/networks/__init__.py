"""Stacked networks and how wide the paper makes them.

Uses `numerics`. Start reading at `mlp`, then `sizes`.
"""

__all__ = ["mlp", "modules", "projector", "sizes"]
