"""A guest audits itself: it has its rows, its trained encoder and its defence, so it can attack what it sends."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.audit.attacks.inversion import measure
from dvfl.audit.party.guest_replay import can_be_replayed, replayed
from dvfl.audit.party.party_rows import chosen_rows
from dvfl.audit.readers.readers import Effort
from dvfl.audit.recordings.cases import earlier_of_each
from dvfl.audit.recordings.measured import Control, Measured, of_earlier_releases
from dvfl.audit.recordings.recording import GuestRecording, Recording, Rows
from dvfl.audit.recordings.releases import releases
from dvfl.errors import UserError
from dvfl.federation.guest.guest_release import Release, read_release
from dvfl.federation.guest.guest_training import GuestTraining
from dvfl.federation.party.settings import read_federation, read_guest, role_of
from dvfl.federation.party.storage import Checkpoint, saved_checkpoint
from dvfl.federation.protocol.plan import BadPlan, Plan, read_plan
from dvfl.federation.tables.table import Table, read_prepared


@dataclass(frozen=True)
class TrainedGuest:
    """What a guest's folder holds of it."""

    name: str
    plan: Plan
    saved: Checkpoint
    table: Table
    tests: Table | None
    release: Release | None

    def attacked(self, effort: Effort) -> list[Measured]:
        """What who knows some of its rows makes of the others, with controls."""
        seen = self.recording()
        effort = replace(effort, known=tuple(count for count in effort.known if count <= seen.rows.pool))
        found = measure(seen, effort)
        every = seen.with_earlier()
        if every is not None:
            found += of_earlier_releases(measure(every, effort), "all its encodings")
        for control, other in self.controls(seen).items():
            found += [replace(one, control=control) for one in measure(other, effort)]
        return found

    @property
    def rows(self) -> Rows:
        """How many of its rows serve for what."""
        return self._rows()[0]

    def recording(self) -> Recording:
        """One guest alone: its rows as its encoder reads them, and what its sweep sends of them, after its defence.

        What it pushed of them before is there where that can be told in good time.
        It has no labels and no outputs, so zeros stand there. Test rows are those that it only ever encodes; where it
        has no such rows they are trained on like the others, and say nothing about membership.
        """
        rows, x, slots = self._rows()
        training = self._training()
        training.guest.learner.restore(self.saved.tensors)
        z = _sent(training, x, slots)
        pushed = self._pushed(slots[: rows.trained])
        before = None if pushed is None else earlier_of_each(pushed, [z])[0]
        own = GuestRecording(self.name, torch.from_numpy(x), z, earlier=before)
        labels, outputs = torch.zeros(rows.count, dtype=torch.int64), torch.zeros(1, rows.count, 1)
        return Recording("dvfl", (self.plan.seed,), rows, (own,), labels, outputs)

    def controls(self, seen: Recording) -> dict[Control, Recording]:
        """The same rows as raw columns, and as the same network sends them that was never trained."""
        _, x, slots = self._rows()
        untrained = _sent(self._training(), x, slots)
        return {"raw features": seen.raw(), "random encoder": seen.with_encodings([untrained])}

    def _pushed(self, slots: NDArray[np.int32]) -> Tensor | None:
        if not can_be_replayed(self.plan, self.table.rows, noisy=self._noisy):
            return None
        return replayed(self._training(), self.plan, slots, noisy=self._noisy)

    @property
    def _noisy(self) -> bool:
        return self.release is not None and self.release.noise > 0

    def about(self) -> dict[str, Any]:
        """What figures of it rest on."""
        rows, plan, release = self.rows, self.plan, self.release
        return {
            "rows": {"pool": rows.pool, "victims": rows.victims, "tests": rows.tests},
            "tests_trained_on": self.tests is None,
            "clip": None if release is None else release.clip,
            "noise": 0.0 if release is None else release.noise,
            "flatten": release is not None and release.flatten,
            "guest_objective": plan.guest_objective,
            "adversary": plan.adversary,
            "releases": releases(plan.guest_epochs, plan.period),
            "earlier_releases_attacked": can_be_replayed(plan, self.table.rows, noisy=self._noisy),
        }

    def _training(self) -> GuestTraining:
        return GuestTraining(self.name, self.plan, self.table, self.release)

    def _rows(self) -> tuple[Rows, NDArray[np.float32], NDArray[np.int32]]:
        rows, train, test = chosen_rows(
            self.table.rows, 0 if self.tests is None else self.tests.rows, self.name, stand_ins=True
        )
        x, slots = self.table.take(train), self.table.slots[train]
        if self.tests is not None:
            x, slots = np.concatenate([x, self.tests.take(test)]), np.concatenate([slots, self.tests.slots[test]])
        return rows, x, slots


def trained_guest(folder: Path) -> TrainedGuest:
    """That of a folder; UserError where it has not learned to its end."""
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
    return TrainedGuest(party.party, plan, saved, table, tests, read_release(folder, party))


def _sent(training: GuestTraining, x: NDArray[np.float32], slots: NDArray[np.int32]) -> Tensor:
    """As it leaves the guest: (1, rows, latent)."""
    return torch.from_numpy(training.sent(x, slots, training.encoder_hash))[None]
