"""Decoupled vertical federated learning: learn from columns that cannot be pooled."""

__version__ = "0.1.0"
