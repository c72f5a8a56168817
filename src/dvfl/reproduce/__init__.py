"""The paper's experiments: trainings in blocks, who runs them, results beside the published figures.

Uses `strategies` and `runs`. Start reading at `reproduce`, then `paper` for the experiments.
"""

__all__ = [
    "blocks",
    "outcome",
    "pages",
    "paper",
    "ray_cluster",
    "references",
    "reproduce",
    "sources",
    "timing",
    "worker_pool",
    "workers",
]
