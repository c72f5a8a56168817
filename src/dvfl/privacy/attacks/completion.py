"""A guest completes its encoder with a head of its own, and infers labels from its own columns.

Fu et al., "Label inference attacks against vertical federated learning" (USENIX Security 2022): what a guest's encoder
learned from labels serves whoever has it. There, an active attacker makes its optimiser take longer steps than the
others', so that the joint model comes to lean on its encodings; here its learning rate is that of the others times a
factor.
"""

from dataclasses import replace

import torch
from torch import Tensor

from dvfl.privacy.alike import alike
from dvfl.privacy.cases import Case, recording_of
from dvfl.privacy.label_reader import inferred
from dvfl.privacy.measured import Measured
from dvfl.privacy.readers import Effort
from dvfl.privacy.recording import Recording
from dvfl.strategies.settings import SplitSettings

FACTORS = (10.0,)  # that an active attacker tries


def measure(seen: Recording, effort: Effort) -> list[Measured]:
    """Accuracy on the victims of the average guest, and of the guest that is best over all seeds."""
    found = []
    for count in effort.labels:
        each, _ = _completed(seen, count, effort)
        best = each[int(each.mean(1).argmax())]
        found += [_measured("average guest", count, each.mean(0)), _measured("best guest", count, best)]
    return found


def measure_active(case: Case, effort: Effort, seen: Recording | None = None) -> list[Measured]:
    """What the first guest gains by learning faster than the others, in trainings of their own.

    The factor is chosen by the known labels that are held out. `seen`: the case as it is, where it was recorded before.
    Where no gradient is sent back, no learning rate can draw labels in, and the figure is that of looking on.
    """
    if seen is None:
        seen = recording_of(case.trained(), case.strategy)
    passive = [_completed(_first(seen), count, effort)[0][0] for count in effort.labels]
    found = [_measured("first guest", count, values) for count, values in zip(effort.labels, passive, strict=True)]
    way, s = "first guest, inflated", case.settings
    if not isinstance(s, SplitSettings):
        return found + [replace(one, way=way, channel=False) for one in found]
    tries = []
    for factor in FACTORS:
        active = case.changed(settings=replace(s, inflated=0, inflation=factor))
        tries.append(_first(recording_of(active.trained(), case.strategy)))
    for count in effort.labels:
        each = [_completed(one, count, effort) for one in tries]
        on_victims, held = (torch.stack(both)[:, 0] for both in zip(*each, strict=True))
        best = held.nan_to_num(0).argmax(0, keepdim=True)  # with too few labels to hold any out, the first factor
        found.append(_measured(way, count, on_victims.gather(0, best)[0]))
    return found


def _completed(seen: Recording, count: int, effort: Effort) -> tuple[Tensor, Tensor]:
    """The accuracy of guests' completed models on the victims, and on held-out known rows: (guests, replicas) each."""
    mine = seen.with_encodings(guest.z if guest.own is None else guest.own for guest in seen.guests)
    found: dict[int, tuple[Tensor, Tensor]] = {}
    for group in alike(mine):
        every = mine.outputs.repeat_interleave(len(group.members), 0)
        stacked = replace(mine, seeds=group.seeds, outputs=every)  # one attacker a replica and a guest
        both = (one.view(-1, len(group.members)) for one in inferred(stacked, group.z, count, effort, "completion"))
        found |= dict(zip(group.members, zip(*(one.unbind(1) for one in both), strict=True), strict=True))
    on_victims, held = zip(*(found[guest] for guest in range(len(seen.guests))), strict=True)
    return torch.stack(on_victims), torch.stack(held)


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
        measure="accuracy",
        values=tuple(values.tolist()),
        channel=channel,
    )
