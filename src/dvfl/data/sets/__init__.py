"""Data sets by name: embedded ones, the paper's, where their files come from and how they are checked.

Uses `data.split`. Start reading at `datasets`.
"""

__all__ = ["catalogue", "checksums", "conversion", "datasets", "embedded", "fetch", "paper_sets", "sources"]
