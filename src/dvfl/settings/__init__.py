"""What a training can be told.

Uses `parties`. Start reading at `training`.
"""

__all__ = ["training"]
