"""Predictions over HTTP and the page for people; knows nothing of a federation but a `Predictor`.

Uses `federation.protocol`. Start reading at `app`.
"""

__all__ = ["app", "guarding", "listening", "metrics", "page_files", "rates", "schemas", "server", "tokens", "watching"]
