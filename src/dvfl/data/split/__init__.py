"""Vertically split data: one table a guest, labels apart, and how test rows are held out.

Uses `parties`. Start reading at `vertical`.
"""

__all__ = ["moments", "splits", "vertical"]
