"""From what a command was told to what it does: orders completed, checked and carried out.

A command in `cli` parses, calls one of these, and prints. Uses every room below. Start reading at `options`.
"""

__all__ = [
    "auditing",
    "extras",
    "federation_table",
    "options",
    "page_process",
    "party_auditing",
    "practice",
    "preset_settings",
    "running",
    "serving",
]
