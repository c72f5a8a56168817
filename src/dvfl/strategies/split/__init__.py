"""Split networks: SplitNN with five ways to treat a lost message, VAFL and VFB2.

Uses `simulation` and what is below it. Start reading at `splitnn`, then `split_training`.
"""
