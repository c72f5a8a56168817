"""What parties learn from: label-free objectives for guests and hosts, cross-entropy for owners.

Uses `numerics` and `networks`. Start reading at `objective`; each other objective has a file of its own.
"""

__all__ = ["adversary", "augmentation", "contrastive", "objective", "warps"]
