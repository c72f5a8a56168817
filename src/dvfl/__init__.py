"""Decoupled vertical federated learning: learn from columns that cannot be pooled."""

from typing import TYPE_CHECKING, Any

from dvfl.version import __version__

if TYPE_CHECKING:
    from dvfl.estimators import DVFLClassifier, DVFLRegressor

__all__ = ["DVFLClassifier", "DVFLRegressor", "__version__"]


def __getattr__(name: str) -> Any:
    """The estimators on first use, so that `import dvfl` alone does not wait for PyTorch."""
    if name in ("DVFLClassifier", "DVFLRegressor"):
        from dvfl import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'dvfl' has no attribute '{name}'")
