"""Estimators for scikit-learn users.

Uses `runs`, `strategies` and what is below them. Start reading at `federation`.
"""

from dvfl.estimators.federation import DVFLClassifier, DVFLRegressor
from dvfl.estimators.loading import load

__all__ = ["DVFLClassifier", "DVFLRegressor", "load"]
