"""What commands print while they work and at the end: tables and progress.

Uses every room below.
"""
