"""A real party audits itself, from its own folder alone.

Uses `audit` and `federation`. Start reading at `party_audit`.
"""
