"""Each guest's rows with the owner's by two-party private set intersection (`align = "star"`).

Uses `align`. Start reading at `star`.
"""

__all__ = ["intersection", "star", "star_guest", "star_slots"]
