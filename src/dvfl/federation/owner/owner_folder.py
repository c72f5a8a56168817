"""The owner's folder as predictions need it: read beside the owner's process, which holds the lock; never written."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dvfl.align.ids import IdRules, evened, normalised
from dvfl.data.tables.reading import first_line
from dvfl.errors import UserError
from dvfl.federation.keys.credentials import check_client_keys
from dvfl.federation.owner.collected_rows import CollectedRows, read_collected
from dvfl.federation.owner.head import Head, read_head
from dvfl.federation.party.lifecycle import STATUS
from dvfl.federation.party.settings import check_owner, read_federation, read_owner
from dvfl.federation.party.storage import Checkpoint, saved_checkpoint
from dvfl.federation.protocol.plan import BadPlan, Plan, SignedPlan, read_plan
from dvfl.federation.tables.id_files import LATER, slots_file

_UP_S = 2.5  # an owner's status is written every second


@dataclass(frozen=True)
class Model:
    """A trained head, and the frozen hosts that it was trained on."""

    plan: Plan
    head: Head
    hosts: dict[str, str]  # their hashes
    score: float | None


@dataclass(frozen=True)
class Saved:
    """What the owner's checkpoint says."""

    signed: SignedPlan
    state: str
    epoch: int
    model: Model | None  # before it is trained


def read_saved(checkpoint: Checkpoint, key: Ed25519PublicKey) -> Saved:
    """BadPlan for the checkpoint of another federation."""
    values = checkpoint.values
    signed = read_plan(values["plan"], key)
    model = None
    if values["head"] is not None:
        hosts = {host: frozen for host, (frozen, _) in values["collected"].items() if host in values["whole"]}
        model = Model(signed.plan, read_head(signed.plan, checkpoint.tensors, values["head"]), hosts, values["score"])
    return Saved(signed, values["state"], values["epoch"], model)


class OwnerFolder:
    """Files are read again when they have changed; `refresh` may take a while, all else is at hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        check_owner(folder)
        self.federation = read_federation(folder)
        self.party = read_owner(folder, self.federation)
        check_client_keys(folder, self.party.party, self.federation.name)
        self._rules = IdRules(self.federation.alignment.case)
        self.saved: Saved | None = None
        self.collected: dict[str, CollectedRows] = {}
        self._slots: Mapping[bytes, int] = {}
        self._checkpoint, self._files = _marks([]), _marks([])
        self.refresh()

    @property
    def guests(self) -> tuple[str, ...]:
        plan = self.saved.signed.plan if self.saved else None
        return tuple(self.federation.guests) if plan is None else tuple(guest.name for guest in plan.guests)

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.federation.hosts if self.saved is None else self.saved.signed.plan.hosts

    def refresh(self) -> None:
        """Takes what has changed since the last time."""
        state = self.folder / "state"
        now = _marks([state / "checkpoint.json"])
        if now != self._checkpoint:
            checkpoint = saved_checkpoint(state)
            try:
                self.saved = None if checkpoint is None else read_saved(checkpoint, self.federation.key())
            except BadPlan as error:
                raise UserError(
                    f"{state}: of another federation ({error}); the state that this folder's own owner made is right"
                ) from None
            except (KeyError, TypeError):
                raise UserError(
                    f"{state}: not the state of an owner; the one that this folder's own owner made is right"
                ) from None
            self._checkpoint = now
            model = self.saved.model if self.saved else None
            if {host: rows.frozen for host, rows in self.collected.items()} != (model.hosts if model else {}):
                self.collected = read_collected(self._stored, model.plan, model.hosts) if model else {}
        files = [slots_file(self.folder, self.party.data.slots, self.federation.alignment), state / LATER]
        now = _marks(files)
        if now != self._files:
            there = [path for path in files if path.exists()]
            self._slots = {one: slot for path in there for one, slot in _slots(path, self._rules)}
            self._files = now

    def _stored(self, name: str) -> bytes | None:
        try:
            return (self.folder / "state" / name).read_bytes()
        except OSError:
            return None

    def slot(self, one: str) -> int:
        """The slot of an id; -1 where it has none."""
        return self._slots.get(evened(one, self._rules).encode(errors="replace"), -1)

    def status(self) -> dict[str, Any]:
        """What the owner's process last wrote of itself, and whether it is up."""
        path = self.folder / STATUS
        with suppress(OSError, ValueError, KeyError):
            status: dict[str, Any] = json.loads(path.read_text())
            recent = time.time() - path.stat().st_mtime < _UP_S
            return {**status, "up": bool(status["running"]) and recent and _alive(int(status["pid"]))}
        return {"up": False}

    def how_far(self) -> str:
        """How far a run is that is not over."""
        status = self.status()
        away = "" if status["up"] else f"; {self.party.party} does not run, start dvfl owner"
        if self.saved is None:
            aligning = status.get("state") == "aligning"
            done = f", {status['aligned']} of {status['to_align']}" if aligning and status.get("to_align") else ""
            return f"not trained yet: {'ids are being aligned' + done if aligning else 'no run has begun'}{away}"
        if self.saved.state == "phase 1":
            told = status.get("progress", "guests and hosts train")
            return f"not trained yet: {told}{away}"
        if self.saved.state == "collecting":
            return f"not trained yet: hosts' encodings are being collected{away}"
        return f"not trained yet: epoch {self.saved.epoch} of {self.party.head.epochs} of the head{away}"


def _marks(paths: list[Path]) -> list[tuple[int, int] | None]:
    """What changes when a file does."""
    found: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            state = path.stat()
            found.append((state.st_mtime_ns, state.st_ino))
        except OSError:
            found.append(None)
    return found


def _slots(path: Path, rules: IdRules) -> list[tuple[bytes, int]]:
    try:
        table = pq.read_table(path, columns=["id", "slot"])
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"{path} cannot be read as .parquet of 'id' and 'slot': {first_line(error)}; what alignment wrote is right"
        ) from None
    return list(
        zip(normalised(table.column("id"), rules, str(path), "id"), table.column("slot").to_pylist(), strict=True)
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError):  # where the system tells: killed, and whoever started it has not looked yet
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].lstrip().startswith("Z")
    return True
