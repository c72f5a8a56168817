"""Real parties: guests, hosts and the owner as processes on machines of their own.

Guests, hosts and the owner never import each other, and nothing here imports the simulator. Start reading at
`protocol.messages` for what they say, then `guest.guest`, `host.host` and `owner.owner` for what they do.
"""

__all__ = [
    "custody",
    "guest",
    "host",
    "keys",
    "local",
    "owner",
    "party",
    "prediction",
    "protocol",
    "tables",
    "transport",
]
