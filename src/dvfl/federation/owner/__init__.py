"""The owner: makes the plan, collects encodings, trains its head. Knows no guest and no host but by their messages.

Uses `protocol`, `keys`, `transport`, `party`, `tables`. Start reading at `owner`.
"""
