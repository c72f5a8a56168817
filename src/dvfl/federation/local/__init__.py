"""Parties as processes on this machine: their entry points, a supervisor, a doctor.

Uses every room of `federation`. Start reading at `entrypoints`.
"""

__all__ = ["connectivity", "doctor", "entrypoints", "supervisor"]
