"""A host: keeps what guests push, trains on it, answers the owner. Knows no guest and no owner but by their messages.

Uses `protocol`, `transport`, `party`. Start reading at `host`.
"""

__all__ = [
    "freshness",
    "frozen_answers",
    "host",
    "host_answers",
    "host_screening",
    "host_service",
    "host_training",
    "known_guests",
]
