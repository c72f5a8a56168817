"""Keys, certificates, and messages that are sealed past the hosts.

Uses `protocol`. Start reading at `credentials`.
"""

__all__ = ["authority", "credentials", "sealing"]
