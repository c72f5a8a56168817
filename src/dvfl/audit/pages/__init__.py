"""An audit as people read it: a page, a summary, figures.

Uses `audit.recordings` and `runs`. Start reading at `audit_pages`.
"""

__all__ = ["audit_pages", "leak_figure", "summary", "templating", "verdict"]
