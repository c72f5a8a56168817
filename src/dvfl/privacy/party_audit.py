"""A party of a real federation audits itself, from its own folder alone.

A guest has its rows, its trained encoder and its defence, so it can attack what it sends itself. The owner has what
hosts gave it, and labels. A host has nothing to compare encodings with: its audit is what passed its line.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.errors import UserError
from dvfl.federation.guest_release import Release, read_release
from dvfl.federation.guest_training import GuestTraining
from dvfl.federation.labels import owner_labels
from dvfl.federation.owner_folder import OwnerFolder
from dvfl.federation.plan import BadPlan, Plan, read_plan
from dvfl.federation.settings import read_federation, read_guest, role_of
from dvfl.federation.storage import Checkpoint, saved_checkpoint
from dvfl.federation.table import Table, read_prepared
from dvfl.parties.randomness import numpy_generator
from dvfl.privacy.attacks.inversion import measure
from dvfl.privacy.cases import POOL, TESTS, VICTIMS
from dvfl.privacy.measured import Control, Measured
from dvfl.privacy.party_recordings import wire_summary
from dvfl.privacy.readers import Effort
from dvfl.privacy.recording import GuestRecording, Recording, Rows

_LEAST = 50  # rows, below which a figure would say nothing


def audited_party(folder: Path, effort: Effort) -> tuple[list[Measured], dict[str, Any]]:
    """A guest's encodings, attacked by who knows some of its rows, with controls; every role's lines as plain data."""
    about = {"wire": wire_summary(folder)}
    if role_of(folder) != "guest":
        return [], about
    guest = _trained_guest(folder)
    seen = guest.recording()
    effort = replace(effort, known=tuple(count for count in effort.known if count <= seen.rows.pool))
    found = measure(seen, effort)
    for control, other in guest.controls(seen).items():
        found += [replace(one, control=control) for one in measure(other, effort)]
    return found, {**about, "guest": guest.about()}


def guest_recording(folder: Path) -> Recording:
    """One guest alone: its rows as its encoder reads them, and what its sweep sends of them, after its defence.

    It has no labels and no outputs, so zeros stand there. Test rows are those that it only ever encodes; where it has
    no such rows they are trained on like the others, and say nothing about membership.
    """
    return _trained_guest(folder).recording()


def guest_controls(folder: Path, seen: Recording) -> dict[Control, Recording]:
    """The same rows as raw columns, and as the same network sends them that was never trained."""
    return _trained_guest(folder).controls(seen)


@torch.no_grad()
def owner_recording(folder: Path) -> Recording:
    """What hosts gave the owner, a pseudo-guest each, beside the labels and what the head makes of all of it.

    There are no columns at the owner: `x` is (rows, 0). Tests are the owner's test labels.
    """
    owner = OwnerFolder(folder)
    model = owner.saved.model if owner.saved else None
    if model is None:
        raise UserError(f"{folder}: {owner.how_far()}; an audit needs its trained head")
    if model.head.classes is None:
        raise UserError(f"{folder}: the labels are numbers; an audit of labels needs classes")
    if owner.collected.keys() != model.hosts.keys():
        raise UserError(f"{folder}: what hosts gave is not all there or above 1 GiB; an audit needs it in memory")
    labels, tests = owner_labels(folder, owner.federation, owner.party)
    rows, train, test = _chosen(len(labels.y), 0 if tests is None else len(tests.y), owner.party.party)
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
    return Recording("dvfl", (plan.seed,), rows, tuple(guests), torch.from_numpy(np.asarray(y, np.int64)), outputs)


@dataclass(frozen=True)
class _TrainedGuest:
    """What a guest's folder holds of it."""

    name: str
    plan: Plan
    saved: Checkpoint
    table: Table
    tests: Table | None
    release: Release | None

    def recording(self) -> Recording:
        rows, x, slots = self._rows()
        training = self._training()
        training.guest.learner.restore(self.saved.tensors)
        z = _sent(training, x, slots)
        own = GuestRecording(self.name, torch.from_numpy(x), z)
        labels, outputs = torch.zeros(rows.count, dtype=torch.int64), torch.zeros(1, rows.count, 1)
        return Recording("dvfl", (self.plan.seed,), rows, (own,), labels, outputs)

    def controls(self, seen: Recording) -> dict[Control, Recording]:
        _, x, slots = self._rows()
        untrained = _sent(self._training(), x, slots)
        return {"raw features": seen.raw(), "random encoder": seen.with_encodings([untrained])}

    def about(self) -> dict[str, Any]:
        """What figures of it rest on."""
        rows, _, _ = self._rows()
        plan, release = self.plan, self.release
        return {
            "rows": {"pool": rows.pool, "victims": rows.victims, "tests": rows.tests},
            "tests_trained_on": self.tests is None,
            "clip": None if release is None else release.clip,
            "noise": 0.0 if release is None else release.noise,
            "flatten": release is not None and release.flatten,
            "guest_objective": plan.guest_objective,
            "adversary": plan.adversary,
            "releases": plan.guest_epochs // plan.period + 1,  # of each row, at least: every push and the sweep
        }

    def _training(self) -> GuestTraining:
        return GuestTraining(self.name, self.plan, self.table, self.release)

    def _rows(self) -> tuple[Rows, NDArray[np.float32], NDArray[np.int32]]:
        rows, train, test = _chosen(self.table.rows, 0 if self.tests is None else self.tests.rows, self.name)
        x, slots = self.table.take(train), self.table.slots[train]
        if self.tests is not None:
            x, slots = np.concatenate([x, self.tests.take(test)]), np.concatenate([slots, self.tests.slots[test]])
        return rows, x, slots


def _trained_guest(folder: Path) -> _TrainedGuest:
    role = role_of(folder)
    if role != "guest":
        raise UserError(f"{folder} is the folder of a {role}; that of a guest is right")
    federation = read_federation(folder)
    party = read_guest(folder, federation)
    saved = saved_checkpoint(folder / "state")
    text = saved.values["plan"] if saved is not None else ""
    if saved is None or not text:
        raise UserError(f"{folder}: no run has begun; an audit needs the guest's trained encoder")
    try:
        plan = read_plan(text, federation.key()).plan
    except BadPlan as error:
        raise UserError(
            f"{folder / 'state'}: of another federation ({error}); the guest's own state is right"
        ) from None
    if saved.values["epoch"] < plan.guest_epochs:
        far = f"epoch {saved.values['epoch']} of {plan.guest_epochs}"
        raise UserError(f"{folder}: {party.party} is at {far}; an audit needs its trained encoder")
    tests = None if party.data.test_table is None else read_prepared(folder / "state" / "test_table")
    table = read_prepared(folder / "state" / "table")
    return _TrainedGuest(party.party, plan, saved, table, tests, read_release(folder, party))


def _chosen(trained: int, tested: int, name: str) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """How many rows serve for what: four fifths may be known, a fifth never is; without test rows a tenth stands in."""
    if trained < _LEAST:
        raise UserError(f"{name} has {trained} rows; for an audit {_LEAST} at least are right")
    draw = numpy_generator(0, "audit", name)
    stand_in = 0 if tested else min(TESTS, trained // 10)
    victims = min(VICTIMS, (trained - stand_in) // 5)
    pool = min(POOL, trained - stand_in - victims)
    rows = Rows(pool, victims, min(TESTS, tested) or stand_in)
    train = draw.permutation(trained)[: rows.trained + stand_in]
    return rows, train, draw.permutation(tested)[: rows.tests if tested else 0]


def _sent(training: GuestTraining, x: NDArray[np.float32], slots: NDArray[np.int32]) -> Tensor:
    """As it leaves the guest: (1, rows, latent)."""
    return torch.from_numpy(training.sent(x, slots, training.encoder_hash))[None]
