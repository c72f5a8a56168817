"""What a host remembers: registers `B[guest, host]`, the same row by row, and the replay buffer `A[host]`.

Uses `numerics`. Start reading at `registers`.
"""

__all__ = ["registers", "replay", "row_registers"]
