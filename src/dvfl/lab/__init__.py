"""What a hospital need not review: benchmarks, practice shares, links that can be made to fail.

Uses every room below. Start reading at `practice`; `chaos` strikes practice federations by a seed.
"""

__all__ = ["bench_scaling", "bench_training", "bench_transport", "chaos", "practice", "proxy"]
