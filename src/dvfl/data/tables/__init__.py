"""The users' own tables: read, typed, encoded, joined.

Uses `data.split` and `data.sets`. Start reading at `federation_tables`.
"""
