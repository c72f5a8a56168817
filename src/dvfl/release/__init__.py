"""What leaves a guest: encodings that are clipped, flattened or noisy, and what that noise promises.

Uses `parties`. Start reading at `release`.
"""

__all__ = ["accounting", "flattening", "release"]
