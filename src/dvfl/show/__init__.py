"""What commands print while they work and at the end: tables and progress.

Uses every room below. Start reading at `progress`.
"""

__all__ = ["align_table", "block_progress", "chaos_table", "predict_table", "progress"]
