"""How messages travel: the line that a party needs, NATS, a host's broker, what an audit notes of them.

Uses `protocol` and `keys`. Start reading at `line`, the seam; `nats` is what carries it.
"""

__all__ = ["accounts", "broker", "journal", "launcher", "line", "nats", "recorded_lines", "streams"]
