"""The owner: makes the plan, collects encodings, trains its head. Knows no guest and no host but by their messages.

Uses `protocol`, `keys`, `transport`, `party`, `tables`. Start reading at `owner`.
"""

__all__ = [
    "alignment_service",
    "collected_rows",
    "head",
    "labels",
    "owner",
    "owner_alignment",
    "owner_folder",
    "owner_service",
    "owner_training",
    "results",
]
