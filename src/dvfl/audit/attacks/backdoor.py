"""A guest teaches the federation to read a pattern of its own as one class, and shows the pattern at prediction.

After Gu et al. (2017), who poison training images with a trigger, and Liu et al. (2020), who look at a vertical party
that has no labels but knows the class of a few rows. The guest can change nothing but its own columns: in some training
rows of the target class, and in the rows that are predicted. It follows no gradient, so any strategy can be tried.
"""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.cases import Case, Training, Variation, class_numbers, encodings, middle
from dvfl.audit.recordings.measured import Measured
from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.numerics.randomness import numpy_generator
from dvfl.simulation.simulation import Simulation

_SHARE = 0.01  # of the training rows
_TARGET = 0  # class number; where labels are numbers, the lower half
_NAME = "poisoned rows"


def variations(case: Case) -> dict[str, Variation]:
    """What the guest makes of the training."""
    return {_NAME: Variation(data=poisoned(case.data))}


def measure(case: Case, effort: Effort, training: Training | None = None) -> list[Measured]:
    """`figures` of a case that is trained here, unless `training` has it with its `variations` beside it.

    `effort` has no say: both are trained as the case is.
    """
    training = training or case.trained(variations(case))
    outputs = shown(training.simulation, case.data)
    return figures(case.data, outputs[training.case], outputs[training.variation(_NAME)])


def figures(data: VerticalData, outputs: Tensor, turned: Tensor) -> list[Measured]:
    """The share of test rows of other classes that are taken for the target class with the trigger in them.

    Beside it the same share of a federation that was trained without poisoned rows. Both are given by what they say,
    `turned` and `outputs` (replicas, test rows, classes), of rows with the trigger.
    """
    found = Measured(
        "backdoor",
        "trigger",
        "a guest",
        "nothing",
        len(_rows(data)),
        "classes",
        "predictions of one class",
        "share of rows",
        _success(data, turned),
    )
    none = replace(found, way="trigger, no poisoned rows", known=0, known_of="nothing", control="nothing seen")
    return [found, replace(none, values=_success(data, outputs))]


def shown(simulation: Simulation, data: VerticalData) -> Tensor:
    """What a trained federation says of test rows that every guest has, with the trigger in them: (replicas, rows,
    classes)."""
    tests = data.complete_tests
    tables = [torch.from_numpy(one.test[tests]).to(simulation.device) for one in poisoned(data).guests]
    return encodings(simulation, tables)[1]


def poisoned(data: VerticalData) -> VerticalData:
    """The data with the trigger in some training rows of the target class, and in all test rows."""
    return triggered(data, guest_of(data), _rows(data))


def guest_of(data: VerticalData) -> int:
    """The number of the guest that attacks: it has most columns."""
    return int(np.argmax([one.columns for one in data.guests]))


def triggered(data: VerticalData, guest: int, rows: NDArray[np.int64]) -> VerticalData:
    """The data with a guest's trigger in some labelled rows and in all test rows: each column at its largest value."""
    own = data.guests[guest]
    trigger = own.train.max(0)
    train = own.train.copy()
    train[rows if data.labelled is None else data.labelled[guest][rows]] = trigger
    changed = replace(own, train=train, test=np.tile(trigger, (len(own.test), 1)))
    return replace(data, guests=(*data.guests[:guest], changed, *data.guests[guest + 1 :]))


def _rows(data: VerticalData) -> NDArray[np.int64]:
    """Numbers of labelled rows of the target class that every guest has, drawn once for all seeds."""
    own = np.flatnonzero((class_numbers(data)[0] == _TARGET) & data.complete)
    if len(own) == 0:
        raise UserError(f"{data.name}: no training row of class {_TARGET}; a backdoor needs some")
    count = min(max(1, round(_SHARE * int(data.complete.sum()))), len(own))
    return numpy_generator(0, "backdoor", data.name).permutation(own)[:count]


def _success(data: VerticalData, outputs: Tensor) -> tuple[float, ...]:
    """Of each seed, in percent."""
    guess = outputs.argmax(2) if data.classes is not None else (outputs[..., 0] > middle(data)).long()
    others = torch.from_numpy(class_numbers(data)[1][data.complete_tests] != _TARGET).to(guess.device)
    return tuple(((guess[:, others] == _TARGET).double().mean(1) * 100).tolist())
