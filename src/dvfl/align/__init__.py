"""Private alignment: from ids that nobody may show to slots that say nothing.

Uses no other room. Start reading at `tasks`, then `guest` and `owner`.
"""

__all__ = ["entities", "errands", "guest", "ids", "matching", "owner", "rows", "sessions", "star", "tasks", "union"]
