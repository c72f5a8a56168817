"""The paper's experiments: trainings in blocks, who runs them, results beside the published figures.

Uses `strategies` and `runs`. Start reading at `reproduce`, then `paper` for the experiments.
"""
