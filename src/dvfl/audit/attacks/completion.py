"""A guest completes its encoder with a head of its own, and infers labels from its own columns.

Fu et al., "Label inference attacks against vertical federated learning" (USENIX Security 2022): what a guest's encoder
learned from labels serves whoever has it. There, an active attacker makes its optimiser take longer steps than the
others', so that the joint model comes to lean on its encodings; here its learning rate is that of the others times a
factor.
"""

from dataclasses import replace

import torch
from torch import Tensor

from dvfl.audit.readers.alike import alike
from dvfl.audit.readers.label_reader import LabelReader
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.cases import Case, Training, Variation, recording_of
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import Recording
from dvfl.settings.training import SplitSettings

Told = dict[tuple[str, int], tuple[Tensor, Tensor]]  # by way and number of labels: on victims, on held-out known rows


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """How many of the victims' labels the average guest names, and the guest that is best over all seeds."""
    found = []
    for (way, count), (each, _) in _completed(seen, effort).items():
        best = each[int(each.mean(1).argmax())]
        found += [
            _measured(f"average guest, {way}", count, each.mean(0)),
            _measured(f"best guest, {way}", count, best),
        ]
    return found


def variations(case: Case, effort: Effort) -> dict[str, Variation]:
    """What the first guest makes of the training; nothing where no gradient is sent back."""
    s = case.settings
    if not isinstance(s, SplitSettings):
        return {}
    return {_name(factor): Variation(settings=replace(s, inflated=0, inflation=factor)) for factor in effort.factors}


def measure_active(
    case: Case, effort: Effort, seen: Recording | None = None, training: Training | None = None
) -> list[Measured]:
    """What the first guest gains by learning faster than the others.

    The factor is chosen by the known labels that are held out. `seen`: the case as it is, where it was recorded before;
    `training`: it and its `variations`, where they were trained before. Where no gradient is sent back, no learning
    rate can draw labels in, and the figure is that of looking on.
    """
    factors = effort.factors if variations(case, effort) else ()
    if training is None and (factors or seen is None):
        training = case.trained(variations(case, effort))
    if seen is None:
        assert training is not None
        seen = recording_of(training.simulation, case.strategy, training.case)
    looking_on = {key: each[0] for key, (each, _) in _completed(_first(seen), effort).items()}
    found = [_measured(f"first guest, {way}", count, values) for (way, count), values in looking_on.items()]
    if not factors:
        return found + [
            _measured(f"{_INFLATED}, {way}", count, values, channel=False)
            for (way, count), values in looking_on.items()
        ]
    assert training is not None
    tries = []
    for factor in factors:
        own = training.variation(_name(factor))
        tries.append(_completed(_first(recording_of(training.simulation, case.strategy, own)), effort))
    for way, count in looking_on:
        on_victims, held = (torch.stack(both)[:, 0] for both in zip(*(one[way, count] for one in tries), strict=True))
        best = held.nan_to_num(0).argmax(0, keepdim=True)  # with too few labels to hold any out, the first factor
        found.append(_measured(f"{_INFLATED}, {way}", count, on_victims.gather(0, best)[0]))
    return found


_INFLATED = "inflated first guest"


def _name(factor: float) -> str:
    return f"first guest, {factor:g} times"


def _completed(seen: Recording, effort: Effort) -> Told:
    """What guests' completed models name right, by every way: (guests, replicas) each."""
    mine = seen.with_encodings(guest.z if guest.own is None else guest.own for guest in seen.guests)
    found: dict[tuple[str, int], dict[int, tuple[Tensor, Tensor]]] = {}
    for group in alike(mine):
        every = mine.outputs.repeat_interleave(len(group.members), 0)
        stacked = replace(mine, seeds=group.seeds, outputs=every)  # one attacker a replica and a guest
        reader = LabelReader(stacked, group.z, "completion")
        for count in effort.labels:
            for way, both in reader.inferred(count, effort).items():
                each = zip(*(one.view(-1, len(group.members)).unbind(1) for one in both), strict=True)
                found.setdefault((way, count), {}).update(zip(group.members, each, strict=True))
    guests = range(len(seen.guests))
    return {
        key: (torch.stack([own[guest][0] for guest in guests]), torch.stack([own[guest][1] for guest in guests]))
        for key, own in found.items()
    }


def _first(seen: Recording) -> Recording:
    """The first guest alone."""
    return replace(seen, guests=seen.guests[:1])


def _measured(way: str, count: int, values: Tensor, *, channel: bool = True) -> Measured:
    return Measured(
        "completion",
        way,
        who="a guest",
        saw="its own encoder",
        known=count,
        known_of="labels of each class",
        target="labels",
        measure="balanced accuracy",
        values=tuple(values.tolist()),
        channel=channel,
    )
