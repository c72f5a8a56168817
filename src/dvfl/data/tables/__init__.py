"""The users' own tables: read, typed, encoded, joined.

Uses `data.split` and `data.sets`. Start reading at `federation_tables`.
"""

__all__ = [
    "blocks",
    "columns",
    "csv_blocks",
    "federation_tables",
    "kinds",
    "overlap",
    "practice",
    "reading",
    "survey",
    "targets",
]
