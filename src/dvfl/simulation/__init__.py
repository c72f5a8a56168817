"""The stacked engine: rounds, data, stacks of parties, checkpoints; everything that all strategies share.

Uses `parties`, `release`, `settings` and `data`. Start reading at `simulation`, then `stack`.
"""
