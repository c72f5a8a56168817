"""What the owner's head makes of hosts' answers, and what each prediction rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dvfl.federation.answering import places
from dvfl.federation.fields import ABSENT, CACHED, FRESH, SUSPECTED, BadMessage
from dvfl.federation.owner_folder import Model
from dvfl.federation.predictions import GuestPart, Prediction
from dvfl.federation.wire import Predict, Predicted


def check_answer(model: Model, host: str, asked: Predict, answer: Predicted) -> None:
    """Refuses what is not this host's answer, by the weights that the head was trained on."""
    right = host, model.plan.run, model.hosts[host]
    if (answer.host, answer.run, answer.frozen) != right or not np.array_equal(answer.slots, asked.slots):
        raise BadMessage("not the answer to what was asked")
    shapes = answer.values.shape[1], answer.states.shape[1]
    if shapes != (model.plan.sizes.host_latent, len(model.plan.guests)):
        raise BadMessage("encodings of another width, or of other guests")


def combined(
    model: Model, ids: Sequence[str], slots: NDArray[np.int32], answers: Mapping[str, Sequence[Predicted]]
) -> list[Prediction]:
    """One prediction for each id, whose slot is -1 where it has none, from what hosts answered."""
    plan = model.plan
    wanted = np.unique(slots[slots >= 0])
    count, hosts, guests = len(wanted), len(plan.hosts), len(plan.guests)
    joint = np.zeros((count, hosts, plan.sizes.host_latent), np.float32)
    answered = np.zeros((count, hosts), bool)
    states, ages = np.full((count, hosts, guests), ABSENT, np.uint8), np.zeros((count, hosts, guests), np.float32)
    for number, host in enumerate(plan.hosts):
        for part in answers.get(host, ()):
            at = places(wanted, part.slots)
            mine = at >= 0  # the others were only asked for so that nobody knows which are meant
            at = at[mine]
            joint[at, number], answered[at, number] = part.values[mine], True
            states[at, number], ages[at, number] = part.states[mine], part.ages[mine]
    used = (states == CACHED) | (states == FRESH)
    present = answered & used.any(2)  # a host that had nobody has nothing to say
    outputs = _outputs(model, joint, present).tolist() if count else []
    rests = _rests(model, answered, states, ages)
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
    output = model.head.outputs(torch.from_numpy(joint).flatten(1), torch.from_numpy(present)).double()
    if model.head.classes is not None:
        output = torch.softmax(output / model.head.temperature, 1)
    numbers: NDArray[np.float64] = output.numpy()
    return numbers


def _rests(
    model: Model, answered: NDArray[np.bool_], states: NDArray[np.uint8], ages: NDArray[np.float32]
) -> list[dict[str, Any]]:
    """Of every row: whether it is degraded, the best that any host had of each guest, and which hosts answered."""
    fresh, cached = states == FRESH, states == CACHED
    asked = [host in model.hosts for host in model.plan.hosts]
    degraded = (~fresh[:, asked].all((1, 2))).tolist()
    youngest = np.where(cached, ages, np.inf).min(1).tolist()
    best = np.where(fresh.any(1), FRESH, np.where(cached.any(1), CACHED, (states == SUSPECTED).any(1) * SUSPECTED))
    names, hosts = [guest.name for guest in model.plan.guests], model.plan.hosts
    return [
        {
            "degraded": worse,
            "guests": {
                name: GuestPart("cached", round(age, 3)) if state == CACHED else _PARTS[state]
                for name, state, age in zip(names, row, old, strict=True)
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


_PARTS = {
    ABSENT: GuestPart("absent"),
    FRESH: GuestPart("fresh", 0.0),
    SUSPECTED: GuestPart("absent", suspected=True),
}
