"""The parties of the paper as pure state: a guest, a host and an owner, each a stack of one or of many.

A party owns no socket, no file, no clock and no global random state: time, randomness and transport are passed in.
Uses its own rooms alone (`numerics`, `networks`, `objectives`, `memory`, `faults`). Start reading at `guest`.
"""

__all__ = [
    "absence",
    "calibration",
    "cross_prediction",
    "early_stopping",
    "faults",
    "guest",
    "host",
    "memory",
    "networks",
    "numerics",
    "objectives",
    "owner",
    "party_networks",
    "pass_masks",
    "screening",
    "standardisation",
]
