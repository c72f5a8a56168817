"""How organisations come together: invitations, requests, admission, practice folders. No key leaves its machine.

Uses `keys`, `transport`, `party`, `tables`. Start reading at `joining` and `admission`.
"""

__all__ = ["admission", "enrolment", "founding", "joining"]
