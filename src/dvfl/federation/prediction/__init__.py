"""Predictions with all parties that answer in time, on the owner's side.

Uses `owner` and what is below it. Start reading at `predicting`.
"""

__all__ = ["host_watch", "merge_predictions", "predicting", "prediction_tables"]
