"""Estimators for scikit-learn users."""

from dvfl.estimators.federation import DVFLClassifier, DVFLRegressor

__all__ = ["DVFLClassifier", "DVFLRegressor"]
