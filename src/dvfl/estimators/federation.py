"""`DVFLClassifier` and `DVFLRegressor`: a simulated federation behind scikit-learn's interface."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from dvfl.callbacks import Callback, Values, advance, followed
from dvfl.data.split.vertical import GuestTable, VerticalData
from dvfl.data.tables.columns import ColumnEncoder
from dvfl.data.tables.overlap import union
from dvfl.estimators.chosen_settings import chosen_settings
from dvfl.estimators.fitted_stack import history, network_guests, packed, precise, unpacked, user_encoders
from dvfl.estimators.given import as_value_errors, device_of, one_dimensional, plain, seed_of
from dvfl.estimators.guest_columns import (
    Guests,
    as_frame,
    as_trained,
    fit_columns,
    holdings,
    is_list_of_tables,
    numbers,
)
from dvfl.estimators.joined_rows import by_position, in_order, join, row_names, spread
from dvfl.parties.objectives.objective import ObjectiveName
from dvfl.release.accounting import DELTA, release_epsilon
from dvfl.release.release import Unnumbered
from dvfl.simulation import storage
from dvfl.simulation.simulation import Simulation
from dvfl.simulation.stack import Encoder
from dvfl.strategies.decoupled.dvfl import Dvfl


class _Federation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: guests' columns, training, the joint encoding, storage."""

    def __init__(
        self,
        *,
        guests: Guests = None,  # of one table X: how many share its columns, or the columns of each; None: one has all
        hosts: int = 4,
        preset: str = "tuned",
        guest_epochs: int | None = None,  # None: the preset's, as with the other epochs
        host_epochs: int | None = None,
        owner_epochs: int | None = None,
        batch: int | None = None,  # None: 64, or all rows where there are fewer
        period: int
        | None = None,  # guests push in every so many epochs; None: in every one, in the last with adversary
        w_g: int | None = None,  # width of all guests' encodings together; None: the preset's
        guest_objective: ObjectiveName | None = None,  # what guests learn by; None: reconstruction, or the shield's
        host_objective: ObjectiveName | None = None,  # likewise, hosts
        temperature: float | None = None,  # of SimCLR; None: the preset's
        adversary: float | None = None,  # weight of a decoder that guests of SimCLR learn against; None: none; 0.5, say
        encoders: Sequence[Encoder | None] | None = None,  # one a guest; None: the default network
        guest_dropout: float | None = None,  # how often a guest is hidden from a host in training; None: the preset's
        host_dropout: float | None = None,  # how often a host is hidden from the owner in training; likewise
        partial: int | None = None,  # times more that hosts encode labelled rows, with guests hidden; likewise
        absent: bool = False,  # the model learns to do without parties; sets what of these three is None
        shield: float | None = None,  # encodings harder to invert, with noise of so many times their size; 0.6, say
        clip: float | None = None,  # the longest encoding of a row that leaves a guest; None: any, or the shield's
        noise: float | None = None,  # deviation of the noise on what leaves, in clips; None: none, or the shield's
        epsilon: float | None = None,  # in place of noise: the most that all of a row's releases may cost, at `delta_`
        entity_augmentation: bool = False,  # the owner also learns from rows of different entities put together
        early_stopping: bool = False,  # by a tenth of the training rows, which the owner then holds out
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        verbose: bool = False,
        callbacks: Sequence[Callback] | None = None,  # told of every epoch, such as dvfl.callbacks.TensorBoard
    ) -> None:
        self.guests = guests
        self.hosts = hosts
        self.preset = preset
        self.guest_epochs = guest_epochs
        self.host_epochs = host_epochs
        self.owner_epochs = owner_epochs
        self.batch = batch
        self.period = period
        self.w_g = w_g
        self.guest_objective = guest_objective
        self.host_objective = host_objective
        self.temperature = temperature
        self.adversary = adversary
        self.encoders = encoders
        self.guest_dropout = guest_dropout
        self.host_dropout = host_dropout
        self.partial = partial
        self.absent = absent
        self.shield = shield
        self.clip = clip
        self.noise = noise
        self.epsilon = epsilon
        self.entity_augmentation = entity_augmentation
        self.early_stopping = early_stopping
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any) -> Self:
        """Trains guests, hosts and owner on a list of tables, one a guest, or on one table.

        Rows of tables with the same index, or without one, belong together by their position; of tables with others, by
        the index, and so do the labels in `y`. Rows that some tables lack are trained on as well (docs/estimators.md).
        """
        frames = self._frames(X, reset=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if is_list_of_tables(X):
            joined = join(X, frames, y)
            if not joined.overlap.whole:
                names = [f"table {number + 1}" for number in range(len(frames))]
                print(f"{type(self).__name__}: {joined.overlap.describe(names, 'y')}", flush=True)
        else:
            joined = by_position(frames, y)  # as scikit-learn has it
        target, classes = self._learn_labels(one_dimensional(joined.y))
        columns = fit_columns(joined.frames)
        tables = numbers(columns, joined.frames)
        guests = tuple(GuestTable(f"guest-{i + 1}", x, x[:0]) for i, x in enumerate(tables))
        data = VerticalData("y", guests, target, target[:0], classes, labelled=joined.labelled)
        seed = seed_of(self.random_state)
        with as_value_errors():
            encoders = self._encoders(len(guests))
            settings = chosen_settings(self.get_params(deep=False), data)
            training = Dvfl(data, settings, [seed], device=device_of(self.device), encoders=encoders)
            self._train(training)
        self.columns_, self.seed_, self.stack_, self.history_ = columns, seed, training.stack, history(training)
        self.overlap_ = joined.overlap
        return self

    def rows(self, X: Any) -> pd.Index:
        """The rows that `predict`, `predict_proba` and `transform` answer for, in their order.

        Those of all tables where their indices differ, in the order of first appearance, one table after the other.
        """
        check_is_fitted(self)
        frames = self._frames(X, reset=False)
        ids = row_names(X, frames) if is_list_of_tables(X) else None
        if ids is not None:
            return union(ids)
        named = [frame for frame, table in zip(frames, X, strict=True) if isinstance(table, pd.DataFrame)]
        return (named or frames)[0].index if is_list_of_tables(X) else frames[0].index

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The joint encoding: all hosts' encodings side by side, or the guests' where there is no host."""
        return self._encode(X).cpu().numpy()

    @property
    def epsilon_(self) -> float | None:
        """What noise promises: epsilon, at `delta_`, of all that `fit` sent of one row of a guest (docs/estimators.md).

        None without noise, or without the extra `dvfl[privacy]`. Counted when it is asked for, which takes a while.
        """
        check_is_fitted(self)
        return release_epsilon(self.stack_.settings.noise, self.stack_.settings.releases)

    @property
    def delta_(self) -> float:
        """Of `epsilon_`."""
        check_is_fitted(self)
        return DELTA

    def save(self, path: str | Path) -> None:
        """Writes a folder of safetensors and a manifest. Networks given in `encoders` are needed again to load it."""
        check_is_fitted(self)
        # The seed that was drawn, where `random_state` was none, trains the same model again.
        parameters = {**self.get_params(deep=False), "encoders": None, "callbacks": None, "random_state": self.seed_}
        extra = {
            "estimator": type(self).__name__,
            "parameters": {name: plain(value) for name, value in parameters.items()},
            "guests": self.guests_,
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "columns": [encoder.to_dict() for encoder in self.columns_],
            "labels": self._labels_as_dict(),
            "networks": network_guests(user_encoders(self.stack_)),
        }
        with as_value_errors():
            storage.save(self.stack_, Path(path), extra)

    @classmethod
    def load(cls, path: str | Path, encoders: Sequence[Encoder | None] | None = None, *, device: str = "cpu") -> Self:
        """Reads what `save` wrote; `encoders` as in training where guests had networks of the user's own."""
        _check_saved(Path(path), cls.__name__, encoders)
        with as_value_errors():
            stack, extra = storage.load(Path(path), device_of(device), encoders)
        parameters = {**extra["parameters"], "encoders": encoders, "device": device}
        estimator = cls(**parameters)
        estimator.guests_, estimator.seed_, estimator.stack_ = extra["guests"], stack.seeds[0], stack
        estimator.columns_ = [ColumnEncoder.from_dict(plain) for plain in extra["columns"]]
        estimator.n_features_in_ = sum(len(held) for held in estimator.guests_)
        if extra["feature_names"]:
            estimator.feature_names_in_ = np.array(extra["feature_names"], dtype=object)
        estimator._labels_from_dict(extra["labels"])
        return estimator

    def _learn_labels(self, y: NDArray[Any]) -> tuple[NDArray[np.int64] | NDArray[np.float32], tuple[str, ...] | None]:
        """The target as the owner learns it, and the classes' names; None for a regression."""
        raise NotImplementedError

    def _labels_as_dict(self) -> dict[str, Any]:
        """What `load` needs to name labels again."""
        return {}

    def _labels_from_dict(self, plain: dict[str, Any]) -> None:
        """Takes back what `_labels_as_dict` gave."""

    def _encode(self, X: Any) -> Tensor:
        """The joint encoding (rows, width)."""
        check_is_fitted(self)
        frames = self._frames(X, reset=False)
        tables, stack = numbers(self.columns_, frames), precise(self.stack_)
        ids = row_names(X, frames) if is_list_of_tables(X) else None
        present = None
        if ids is not None:
            tables, held = spread(ids, tables)
            present = torch.from_numpy(held)
        origin = None if stack.settings.clip is None else Unnumbered.of(tables)
        joint = stack.encode([torch.from_numpy(x).double() for x in tables], present=present, origin=origin)[0]
        # What no host has a value for is as good as its mean in training.
        return joint if present is None else torch.where(joint.isnan(), stack.centre[0].to(joint.dtype), joint)

    def _in_order(self, X: Any, y: Any, what: str = "y") -> Any:
        """Values of X's rows in the order of predictions."""
        named = is_list_of_tables(X) and any(isinstance(table, pd.DataFrame) for table in X)
        return in_order(self.rows(X), y, named=named, what=what) if named else y

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        """The owner's raw outputs (rows, outputs)."""
        joint = self._encode(X).double()
        return precise(self.stack_).predict(joint[None])[0].cpu().numpy()

    def _frames(self, X: Any, *, reset: bool) -> list[pd.DataFrame]:
        """One frame a guest; `reset` in training, which decides who holds what."""
        least = 2 if reset else 1
        if is_list_of_tables(X):
            if not reset and any(len(table) for table in X):
                least = 0  # a guest may have none of the rows that others have
            frames = [as_frame(table, least_rows=least, what=f"table {i}") for i, table in enumerate(X, 1)]
            if reset:
                self._hold_tables([frame.shape[1] for frame in frames])
        else:
            frame = as_frame(X, least_rows=least)
            validate_data(self, frame, reset=reset, skip_check_array=True)
            if reset:
                with as_value_errors():
                    self.guests_ = holdings(self.guests, [str(name) for name in frame.columns], named=frame is X)
            frames = [frame.iloc[:, held] for held in self.guests_]
        return frames if reset else as_trained(frames, self.columns_)

    def _hold_tables(self, widths: list[int]) -> None:
        if self.guests is not None and self.guests != len(widths):
            raise ValueError(
                f"guests={self.guests!r} with {len(widths)} tables; guests=None is right for a list of tables"
            )
        ends = np.cumsum(widths).tolist()
        self.guests_ = [list(range(end - width, end)) for width, end in zip(widths, ends, strict=True)]
        self.n_features_in_ = ends[-1]
        if hasattr(self, "feature_names_in_"):  # of an earlier fit; a list of tables has no names as a whole
            del self.feature_names_in_

    def _encoders(self, guests: int) -> Sequence[Encoder | None] | None:
        if self.encoders is not None and len(self.encoders) != guests:
            raise ValueError(f"{len(self.encoders)} encoders for {guests} guests; one each, or None for it, is right")
        return self.encoders

    def _train(self, training: Dvfl) -> None:
        callbacks = [*([_Printed(type(self).__name__)] if self.verbose else []), *(self.callbacks or [])]
        with followed(training, callbacks):
            while not training.finished:
                advance(training, callbacks)

    @property
    def _n_features_out(self) -> int:
        return sum(self.stack_.owner_widths)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stack_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "stack_": packed(self.stack_)} if "stack_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "stack_": unpacked(state["stack_"])} if "stack_" in state else state)


class _Printed(Callback):
    """A line about every tenth part of the run."""

    def __init__(self, name: str) -> None:
        self._name, self._shown = name, 0

    def on_epoch_end(self, run: Simulation, phase: str, epoch: int, values: Values) -> None:
        tenths = 10 * epoch // run.epochs
        if tenths > self._shown or run.finished:
            print(f"{self._name}: {phase}, epoch {epoch} of {run.epochs}", flush=True)
            self._shown = tenths


class DVFLClassifier(ClassifierMixin, _Federation):  # type: ignore[misc]
    """Classes from vertically split tables.

    `fit(tables, y)` takes one table a guest; `fit(X, y)` one table that `guests` hands out. Tables are arrays or data
    frames with numbers, text, booleans, times and missing values.
    """

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (rows, classes) in the order of `classes_`."""
        outputs = self._outputs(X)
        weights = np.exp(outputs - outputs.max(1, keepdims=True))
        probabilities: NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = self._outputs(X).argmax(1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is right; `y` is matched by index as in `fit`."""
        weight = None if sample_weight is None else self._in_order(X, sample_weight, "sample_weight")
        return float(super().score(X, self._in_order(X, y), weight))

    def _learn_labels(self, y: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        check_classification_targets(y)
        self.classes_, target = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, '{self.classes_[0]}'; two classes are needed at least")
        return target.astype(np.int64), tuple(str(label) for label in self.classes_)

    def _labels_as_dict(self) -> dict[str, Any]:
        kind, values = self.classes_.dtype.kind, self.classes_.tolist()
        if kind not in "biufU" and not all(isinstance(value, str) for value in values):
            raise ValueError(f"classes of type {self.classes_.dtype} cannot be saved; text, numbers or booleans can")
        return {"dtype": self.classes_.dtype.str, "classes": values}

    def _labels_from_dict(self, plain: dict[str, Any]) -> None:
        self.classes_ = np.array(plain["classes"], dtype=plain["dtype"])


class DVFLRegressor(RegressorMixin, _Federation):  # type: ignore[misc]
    """A number from vertically split tables; see `DVFLClassifier` for what `fit` takes."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The expected number of each row."""
        return self._outputs(X)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the predictions; `y` is matched by index as in `fit`."""
        weight = None if sample_weight is None else self._in_order(X, sample_weight, "sample_weight")
        return float(super().score(X, self._in_order(X, y), weight))

    def _learn_labels(self, y: NDArray[Any]) -> tuple[Any, None]:
        return y.astype(np.float64), None


def _check_saved(folder: Path, estimator: str, encoders: Sequence[Encoder | None] | None) -> None:
    """Refuses what another class saved, and loading without the networks that the user had given."""
    path = folder / storage.MANIFEST
    if not path.is_file():
        raise ValueError(f"{folder}: no {storage.MANIFEST}; a folder that {estimator}.save wrote is right")
    extra = json.loads(path.read_text()).get("extra", {})
    if extra.get("estimator") != estimator:
        raise ValueError(f"{folder} holds {extra.get('estimator', 'no estimator')}; a saved {estimator} is right")
    given = network_guests(encoders or [])
    if given != extra["networks"]:
        raise ValueError(
            f"encoders: networks for the guests {given or 'none'}; in training the guests"
            f" {extra['networks'] or 'none'} (counted from 1) had their own, and need them again"
        )
