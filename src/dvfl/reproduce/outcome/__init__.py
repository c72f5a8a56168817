"""What an experiment is and what comes of it: its declaration, its results file, its statistics.

Uses no other room. Start reading at `experiment`.
"""

__all__ = ["experiment", "results", "statistics"]
