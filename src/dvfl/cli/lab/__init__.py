"""Commands of the laboratory: benchmarks, and outages of practice federations.

Uses `lab`, by way of `orders`. Start reading at `bench`.
"""

__all__ = ["bench", "chaos"]
