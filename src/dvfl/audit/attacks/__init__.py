"""Attacks, one a file: each looks at a recording and says how much of what is private it tells.

Uses `audit.readers` and `audit.recordings`. Start reading at `registry`, then `inversion`.
"""

__all__ = [
    "backdoor",
    "collusion",
    "completion",
    "direct_labels",
    "gradient_labels",
    "inversion",
    "membership",
    "predictions",
    "probing",
    "registry",
]
