"""Predictions over HTTP and the page for people; knows nothing of a federation but a `Predictor`."""
