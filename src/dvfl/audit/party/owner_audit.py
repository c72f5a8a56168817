"""The owner audits itself: it has what hosts gave it, labels, and its head."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from dvfl.audit.attacks import membership, probing
from dvfl.audit.party.party_rows import chosen_rows
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.measured import Measured
from dvfl.audit.recordings.recording import GuestRecording, Recording
from dvfl.errors import UserError
from dvfl.federation.owner.labels import owner_labels
from dvfl.federation.owner.owner_folder import OwnerFolder


def audited_owner(folder: Path, effort: Effort) -> list[Measured]:
    """What hosts' encodings tell of labels who has none; where there are test labels, how predictions tell who was
    trained on."""
    seen = owner_recording(folder)
    told = [replace(one, who="who has hosts' encodings") for one in probing.measure(seen, effort)]
    told = [one if one.control else replace(one, saw="encodings of all hosts") for one in told]
    return told + (membership.measure(seen, effort) if seen.rows.tests else [])


@torch.no_grad()
def owner_recording(folder: Path) -> Recording:
    """What hosts gave the owner, a pseudo-guest each, beside the labels and what the head makes of all of it.

    There are no columns at the owner: `x` is (rows, 0). Tests are rows of the owner's test labels.
    """
    owner = OwnerFolder(folder)
    model = owner.saved.model if owner.saved else None
    if model is None:
        raise UserError(f"{folder}: {owner.how_far()}; an audit needs its trained head")
    if owner.collected.keys() != model.hosts.keys():
        raise UserError(f"{folder}: what hosts gave is not all there or above 1 GiB; an audit needs it in memory")
    labels, tests = owner_labels(folder, owner.federation, owner.party)
    tested = 0 if tests is None else len(tests.y)
    rows, train, test = chosen_rows(len(labels.y), tested, owner.party.party, stand_ins=False)
    slots, y = labels.slots[train], labels.y[train]
    if tests is not None:
        slots, y = np.concatenate([slots, tests.slots[test]]), np.concatenate([y, tests.y[test]])
    width, plan = model.plan.host_width, model.plan
    joint = torch.zeros(rows.count, len(plan.hosts) * width)
    present = torch.zeros(rows.count, len(plan.hosts), dtype=torch.bool)
    guests = []
    for number, host in enumerate(plan.hosts):
        if host in owner.collected:
            z = torch.from_numpy(owner.collected[host].values[slots])
            joint[:, number * width : (number + 1) * width] = z
            present[:, number] = torch.from_numpy(owner.collected[host].present[slots].any(1))
            guests.append(GuestRecording(host, torch.zeros(rows.count, 0), z[None]))
    outputs = model.head.outputs(joint, None if present.all() else present)[None]
    numbers = None
    if model.head.classes is None:
        numbers, y = torch.from_numpy(np.asarray(y, np.float32)), y > np.median(labels.y)
    truth = torch.from_numpy(np.asarray(y, np.int64))
    return Recording("dvfl", (plan.seed,), rows, tuple(guests), truth, outputs, numbers)
