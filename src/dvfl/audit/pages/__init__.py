"""An audit as people read it: a page, a summary, figures.

Uses `audit.recordings` and `runs`. Start reading at `audit_pages`.
"""
