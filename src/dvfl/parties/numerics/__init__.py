"""What a step is made of: operations on stacks, CUDA kernels, learners with their optimisers, keyed random numbers.

Uses no other room. Start reading at `learner`.
"""

__all__ = ["kernels", "learner", "operations", "randomness", "schedules"]
