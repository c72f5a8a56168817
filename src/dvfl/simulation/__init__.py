"""The stacked engine: rounds, data, stacks of parties, checkpoints; everything that all strategies share.

Uses `parties`, `release`, `settings` and `data`. Start reading at `simulation`, then `stack`.
"""

__all__ = [
    "checkpoint",
    "cpu_threads",
    "dropout",
    "labelled_copies",
    "pattern_draws",
    "replica_data",
    "rounds",
    "simulation",
    "stack",
    "stack_faults",
    "storage",
    "training_rows",
    "wrong_encodings",
]
