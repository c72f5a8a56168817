"""Chaos runs: processes, brokers and links of a practice federation are struck by a seed, and a report says what came.

Uses `federation` and `lab`. Start reading at `chaos`.
"""

__all__ = ["chaos", "chaos_folder", "chaos_parties", "chaos_report", "chaos_resume", "chaos_schedule", "chaos_writes"]
