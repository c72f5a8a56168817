"""Predictions with all parties that answer in time, on the owner's side.

Uses `owner` and what is below it. Start reading at `predicting`.
"""
