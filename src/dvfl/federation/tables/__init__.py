"""A party's own tables of any size: prepared columns, ids, and the slots that alignment gave them.

Uses `party` and `data`. Start reading at `table`.
"""

__all__ = ["id_files", "slots", "table"]
