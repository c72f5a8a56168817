"""The `dvfl` command: one file per command; each parses, calls and prints."""

from dvfl.cli.app import main

__all__ = ["main"]
