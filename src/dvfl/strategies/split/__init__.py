"""Split networks: SplitNN with five ways to treat a lost message, VAFL and VFB2.

Uses `simulation` and what is below it. Start reading at `splitnn`, then `split_training`.
"""

__all__ = ["gradient_defence", "split_checks", "split_model", "split_training", "splitnn", "vafl", "vfb2"]
