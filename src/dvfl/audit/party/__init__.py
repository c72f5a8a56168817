"""A real party audits itself, from its own folder alone.

Uses `audit` and `federation`. Start reading at `party_audit`.
"""

__all__ = [
    "guest_audit",
    "guest_replay",
    "owner_audit",
    "party_audit",
    "party_pages",
    "party_promise",
    "party_recordings",
    "party_rows",
]
