"""A guest: trains on its own rows, pushes encodings, answers hosts. Knows no host and no owner but by their messages.

Uses `protocol`, `transport`, `party`, `tables`. Start reading at `guest`.
"""

__all__ = [
    "alignment_desk",
    "guest",
    "guest_alignment",
    "guest_answers",
    "guest_release",
    "guest_service",
    "guest_training",
    "table_watcher",
]
