"""Chaos runs: processes, brokers and links of a practice federation are struck by a seed, and a report says what came.

Uses `federation` and `lab`. Start reading at `chaos`.
"""
