"""What parties of a trained federation saw of each other: made, kept, read; and what attacks found in it.

Uses `strategies`. Start reading at `recording`.
"""

__all__ = ["cases", "findings", "gradients", "measured", "record_files", "recorder", "recording", "releases"]
