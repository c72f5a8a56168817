"""The union of all parties' rows by commutative encryption on Curve25519, the default way.

Uses `align`. Start reading at `union`.
"""

__all__ = ["curve", "spreading", "union"]
