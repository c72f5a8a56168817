"""The `dvfl` command: one file per command; each parses, calls and prints.

Uses every room below, by way of `orders`. Start reading at `app`.
"""

from dvfl.cli.app import main

__all__ = ["main"]
