"""Decoupled vertical federated learning, the paper's Algorithm 1: guests, then hosts, then the owner.

Uses `simulation` and what is below it. Start reading at `dvfl`, then `guest_phase`, `host_phase`, `owner_phase`.
"""

__all__ = [
    "batch_registers",
    "dvfl",
    "guest_phase",
    "host_memory",
    "host_phase",
    "owner_phase",
    "owner_rows",
    "partial_rows",
    "released_batches",
    "row_tables",
    "user_encoders",
]
