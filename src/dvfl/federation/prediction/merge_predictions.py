"""What the owner's head makes of hosts' answers, and what each prediction rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dvfl.federation.owner.owner_folder import Model
from dvfl.federation.protocol.prediction_limits import places
from dvfl.federation.protocol.predictions import Freshness, GuestPart, Prediction
from dvfl.federation.protocol.wire import Predict, Predicted
from dvfl.federation.protocol.wire_types import ABSENT, CACHED, FRESH, SUSPECTED, BadMessage


def check_answer(model: Model, host: str, asked: Predict, answer: Predicted) -> None:
    """Refuses what is not this host's answer, by the weights that the head was trained on."""
    right = host, model.plan.run, model.hosts[host]
    if (answer.host, answer.run, answer.frozen) != right or not np.array_equal(answer.slots, asked.slots):
        raise BadMessage("not the answer to what was asked")
    shapes = answer.values.shape[1], answer.states.shape[1]
    if shapes != (model.plan.host_width, len(model.plan.guests)):
        raise BadMessage("encodings of another width, or of other guests")


def combined(
    model: Model, ids: Sequence[str], slots: NDArray[np.int32], answers: Mapping[str, Sequence[Predicted]]
) -> list[Prediction]:
    """One prediction for each id, whose slot is -1 where it has none, from what hosts answered."""
    plan = model.plan
    wanted = np.unique(slots[slots >= 0])
    count, hosts, guests = len(wanted), len(plan.hosts), len(plan.guests)
    joint = np.zeros((count, hosts, plan.host_width), np.float32)
    answered = np.zeros((count, hosts), bool)
    worth, ages = np.zeros((count, hosts, guests), np.uint8), np.zeros((count, hosts, guests), np.float32)
    for number, host in enumerate(plan.hosts):
        for part in answers.get(host, ()):
            at = places(wanted, part.slots)
            mine = at >= 0  # the others were only asked for so that nobody knows which are meant
            at = at[mine]
            joint[at, number], answered[at, number] = part.values[mine], True
            worth[at, number], ages[at, number] = _WORTH[part.states[mine]], part.ages[mine]
    present = worth.max(2) >= _OLD  # a host that had nobody has nothing to say
    outputs = _outputs(model, joint, present).tolist() if count else []
    rests = _rests(model, answered, worth, ages)
    whole = present.any(1).tolist()
    known = [
        _prediction(model, output if some else None, rest)
        for output, some, rest in zip(outputs, whole, rests, strict=True)
    ]
    rows = np.searchsorted(wanted, slots).tolist()
    return [
        Prediction(one, known=False) if slot < 0 else replace(known[row], id=one)
        for one, slot, row in zip(ids, slots.tolist(), rows, strict=True)
    ]


def _outputs(model: Model, joint: NDArray[np.float32], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probabilities (rows, classes), or values (rows, 1)."""
    heard = None if present.all() else torch.from_numpy(present)
    output = model.head.outputs(torch.from_numpy(joint.reshape(len(joint), -1)), heard).double()
    if model.head.classes is not None:
        output = torch.softmax(output / model.head.temperature, 1)
    numbers: NDArray[np.float64] = output.numpy()
    return numbers


def _rests(
    model: Model, answered: NDArray[np.bool_], worth: NDArray[np.uint8], ages: NDArray[np.float32]
) -> list[dict[str, Any]]:
    """Of every row: whether it is degraded, the best that any host had of each guest, and which hosts answered."""
    asked = [host in model.hosts for host in model.plan.hosts]
    degraded = (worth[:, asked].min((1, 2)) < _NEW).tolist()
    best = worth.max(1)
    youngest = np.where(worth == best[:, None], ages, np.inf).min(1).tolist()
    names, hosts = [guest.name for guest in model.plan.guests], model.plan.hosts
    return [
        {
            "degraded": worse,
            "guests": {
                name: GuestPart(_USED[most], round(age, 3)) if most in _USED else _UNUSED[most]
                for name, most, age in zip(names, row, old, strict=True)
            },
            "hosts": dict(zip(hosts, heard, strict=True)),
        }
        for worse, row, old, heard in zip(degraded, best.tolist(), youngest, answered.tolist(), strict=True)
    ]


def _prediction(model: Model, output: list[float] | None, rests: dict[str, Any]) -> Prediction:
    """Of a row whose id comes later; without an output where there was nothing to rest on."""
    classes = model.head.classes
    if output is None:
        return Prediction("", known=True, **rests)
    if classes is None:
        return Prediction("", known=True, value=output[0], **rests)
    confidence = max(output)
    label, probabilities = classes[output.index(confidence)], dict(zip(classes, output, strict=True))
    return Prediction("", known=True, label=label, probabilities=probabilities, confidence=confidence, **rests)


# What a host had of a guest, by what it is worth, from nothing at all to an encoding of now.
_NOTHING, _DOUBTED, _OLD, _NEW = range(4)
_WORTH = np.zeros(4, np.uint8)
_WORTH[[ABSENT, SUSPECTED, CACHED, FRESH]] = _NOTHING, _DOUBTED, _OLD, _NEW
_USED: dict[int, Freshness] = {_OLD: "cached", _NEW: "fresh"}
_UNUSED = {_NOTHING: GuestPart("absent"), _DOUBTED: GuestPart("absent", suspected=True)}
