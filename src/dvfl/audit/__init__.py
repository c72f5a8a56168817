"""What leaks, measured: attacks on recordings, defences with their cost, and the report of both.

Uses `strategies`, `federation` and what is below them. Start reading at `audit`.
"""

__all__ = ["attacks", "audit", "defences", "dp_cases", "dpsgd", "pages", "party", "readers", "recordings"]
