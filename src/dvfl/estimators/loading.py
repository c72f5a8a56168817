"""`dvfl.load`: what a folder holds, an estimator that was saved or a run of `dvfl train`."""

import json
from pathlib import Path
from typing import Any

from dvfl.errors import UserError
from dvfl.estimators.federation import DVFLClassifier, DVFLRegressor
from dvfl.runs.run_folder import HISTORY, RESULT
from dvfl.runs.simulate import Figures
from dvfl.simulation.storage import MANIFEST

_ESTIMATORS = {"DVFLClassifier": DVFLClassifier, "DVFLRegressor": DVFLRegressor}


def load(folder: str | Path, **options: Any) -> DVFLClassifier | DVFLRegressor | Figures:
    """Reads what an estimator's `save` or a finished `dvfl train` wrote.

    Args:
        folder: an estimator's folder, or a run's.
        **options: those of the estimator's own `load`, such as `device="cuda"` or `encoders=`.

    Returns:
        The estimator, ready to predict; or the run's figures and losses.

    Example:
        >>> import tempfile
        >>> from sklearn.datasets import load_iris
        >>> from dvfl import DVFLClassifier, load
        >>> X, y = load_iris(return_X_y=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     DVFLClassifier(guests=2, guest_epochs=2, random_state=0).fit(X, y).save(folder)
        ...     load(folder).predict(X[:2]).shape
        (2,)
    """
    path = Path(folder)
    if (path / RESULT).is_file():
        if options:
            raise UserError(f"{path} is a run; {', '.join(options)} is for a saved estimator")
        return Figures(json.loads((path / RESULT).read_text()), json.loads((path / HISTORY).read_text()))
    if not (path / MANIFEST).is_file():
        raise UserError(f"{path}: neither {RESULT} of a finished run nor {MANIFEST} of a saved estimator is there")
    name = json.loads((path / MANIFEST).read_text()).get("extra", {}).get("estimator")
    if name not in _ESTIMATORS:
        raise UserError(f"{path} holds the parties of a run; give the run's folder, which has {RESULT}")
    loaded: DVFLClassifier | DVFLRegressor = _ESTIMATORS[name].load(path, **options)
    return loaded
