"""What a hospital need not review: benchmarks, practice shares, links that can be made to fail.

Uses every room below. `chaos` strikes practice federations by a seed.
"""
