"""Decoupled vertical federated learning: learn from columns that cannot be pooled.

What users write is here: the estimators, `simulate`, `load` and `Callback`. Everything is imported on first use, so
that `import dvfl` alone does not wait for PyTorch. The rooms below are described in docs/architecture.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dvfl.version import __version__

if TYPE_CHECKING:
    from dvfl.callbacks import Callback
    from dvfl.estimators import DVFLClassifier, DVFLRegressor, load
    from dvfl.runs.simulate import Simulated, simulate

__all__ = ["Callback", "DVFLClassifier", "DVFLRegressor", "Simulated", "__version__", "load", "simulate"]

_HOMES = {
    "Callback": "dvfl.callbacks",
    "DVFLClassifier": "dvfl.estimators",
    "DVFLRegressor": "dvfl.estimators",
    "Simulated": "dvfl.runs.simulate",
    "load": "dvfl.estimators",
    "simulate": "dvfl.runs.simulate",
}


def __getattr__(name: str) -> Any:
    """What is exported here, imported when it is first asked for."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dvfl' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
