"""A guest: trains on its own rows, pushes encodings, answers hosts. Knows no host and no owner but by their messages.

Uses `protocol`, `transport`, `party`, `tables`. Start reading at `guest`.
"""
