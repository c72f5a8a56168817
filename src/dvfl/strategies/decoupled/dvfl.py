"""Decoupled vertical federated learning (the paper's Algorithm 1), all replicas at once.

Phase 1 is unsupervised: guests train and push encodings (`guest_phase`), hosts train on what their registers hold and
then on their replay buffers (`host_phase`). Nothing flows back, so an epoch of guests and the hosts' epoch on its
messages run one after the other. Phase 2 is the owner's (`owner_phase`).
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.data.split.vertical import VerticalData
from dvfl.errors import UserError
from dvfl.parties.faults.chains import Chains
from dvfl.parties.faults.fault_set import NO_FAULTS
from dvfl.parties.guest import Guest
from dvfl.parties.host import Host
from dvfl.parties.numerics.learner import Learner
from dvfl.parties.objectives.contrastive import LEAST_TEMPERATURE
from dvfl.parties.objectives.objective import ObjectiveName
from dvfl.release.release import Origin, check_release
from dvfl.settings.training import Settings, variants
from dvfl.simulation import storage
from dvfl.simulation.cpu_threads import keep_freed_memory
from dvfl.simulation.labelled_copies import LabelledCopies, check_copies
from dvfl.simulation.replica_data import GivenData, ReplicaData
from dvfl.simulation.rounds import Stopwatch
from dvfl.simulation.simulation import FLOAT32, Flow, History, State, kept_losses, read_losses, scored
from dvfl.simulation.stack import Encoder, Stack, shape
from dvfl.simulation.stack_faults import PerReplica, per_replica, resolved
from dvfl.simulation.wrong_encodings import WrongEncodings
from dvfl.strategies.decoupled.guest_phase import GuestPhase
from dvfl.strategies.decoupled.host_phase import HostPhase
from dvfl.strategies.decoupled.owner_phase import OwnerPhase
from dvfl.strategies.decoupled.owner_rows import OwnerRows, augmented_rows, check_augmentation, labelled_rows
from dvfl.strategies.decoupled.partial_rows import check_partial, partial_marks
from dvfl.strategies.decoupled.user_encoders import fitted


class Dvfl:
    """One stacked simulation. `advance` runs one epoch of whatever is next, until `finished`."""

    repeated: NDArray[np.int64] | None = None  # nobody asks: guests push
    settings: Settings

    def __init__(
        self,
        data: GivenData,
        settings: Settings | Sequence[Settings],  # one each may differ in the owner's rate and dropout
        seeds: Sequence[int],
        *,
        faults: PerReplica = NO_FAULTS,
        device: torch.device | str = "cpu",
        encoders: Sequence[Encoder | None] | None = None,
    ) -> None:
        self.variants = variants(settings, len(seeds), _without_owner_rates)
        settings = self.variants[0]
        self.device = torch.device(device)
        self.tables = ReplicaData(data, len(seeds), self.device)
        self.data = data = self.tables.first
        for one in self.tables.distinct():
            _check(one, settings)
        self.settings, self.seeds = settings, tuple(seeds)
        self.faults = per_replica(faults, len(self.seeds))
        names = [guest.name for guest in data.guests]
        self.known_faults = resolved(self.faults, names, self.host_names)
        self.stack = Stack(shape(data), settings, seeds, self.device, fitted(encoders, self.tables))
        self.watch = Stopwatch(self.device)
        if self.device.type == "cpu":
            keep_freed_memory()
        self.hosts = HostPhase(self.stack, names, data.rows, self.known_faults, self.watch)
        self.guests = GuestPhase(self.stack, self.tables, self.hosts, self.known_faults, self.watch)
        self.owner: OwnerPhase | None = None

    @property
    def host_count(self) -> int:
        return self.settings.hosts

    @property
    def host_names(self) -> list[str]:
        return [f"host-{number + 1}" for number in range(self.host_count)]

    @property
    def phase(self) -> str:
        """What the next call of `advance` does."""
        if not self.guests.finished:
            return "guests and hosts"
        return "owner" if self.hosts.finished else "hosts, replay"

    @property
    def epochs(self) -> int:
        """How many calls of `advance` a whole training takes, unless the owner stops early."""
        replayed = self.settings.replayed if self.hosts.wanted else 0
        return self.settings.guest_epochs + replayed + self.settings.owner_epochs

    @property
    def epochs_left(self) -> dict[str, int]:
        """Calls of `advance` still to come, by phase."""
        s, hosts, owner = self.settings, self.hosts, self.owner
        return {
            "guests and hosts": s.guest_epochs - self.guests.epoch,
            "hosts, replay": s.replayed - max(0, hosts.epoch - s.communicated) if hosts.wanted else 0,
            "owner": 0 if self.finished else s.owner_epochs - (owner.epoch if owner else 0),
        }

    @property
    def done(self) -> int:
        """How many of them are over."""
        replayed = max(0, self.hosts.epoch - self.settings.communicated)
        return self.guests.epoch + replayed + (self.owner.epoch if self.owner else 0)

    @property
    def finished(self) -> bool:
        return self.owner is not None and self.owner.finished

    @property
    def stalled(self) -> list[int | None]:
        """Nobody waits for anybody."""
        return [None] * len(self.seeds)

    def prepare(self) -> bool:
        """Before the owner's first epoch: collects the encodings. What phase 1 cost can be saved from then on."""
        if self.phase != "owner" or self.owner is not None:
            return False
        self.watch.time("owner", self._open)
        return True

    @torch.no_grad()
    def advance(self) -> None:
        """Runs one epoch."""
        with self.stack.suited(self.settings.batch):
            if self.phase == "guests and hosts":
                self.guests.advance()
            elif self.phase == "hosts, replay":
                self.hosts.advance()
            else:
                self.watch.time("owner", self._owner_epoch)

    def run(self) -> None:
        """Runs what is left."""
        while not self.finished:
            self.advance()

    def open_owner(self) -> OwnerPhase:
        """Collects the encodings of all labelled rows once (Algorithm 1, owner lines 6 to 16)."""
        if self.owner is None:
            self.hosts.release()  # its memory is needed
            self.owner = self._owner_phase(lossy=False)
        return self.owner

    def collect(self) -> Tensor:
        """The encodings of the labelled rows, of their copies, then of partial passes, as they reach the owner.

        (replicas, rows x all of these, all senders)
        """
        names = [guest.name for guest in self.data.guests]
        wrong = [
            WrongEncodings("owner", self.known_faults, [names[i] for i in group.members], group.latent, self.device)
            for group in self.stack.groups
        ]
        labelled, spoiled = self.rows, wrong if any(wrong) else None
        clean, present, rows = labelled.tables, labelled.present, labelled.count
        s, width = self.settings, sum(self.stack.owner_widths)
        if not (s.copies or s.partial):
            return self.stack.encode(clean, spoiled, present, Origin("train"))
        made = LabelledCopies(self.data, s.copies, self.seeds, self.device, rows)
        joint = torch.empty(len(self.seeds), rows * (1 + s.copies + s.partial), width, device=self.device)
        parts = iter(joint.split(rows, 1))  # one at a time: encodings alone are kept
        for number in made:
            origin = Origin(f"copy {number}" if number else "train")
            next(parts).copy_(self.stack.encode(made.tables(number, clean), spoiled, present, origin))
        for seen in partial_marks(s, self.seeds, rows, len(names), present):
            next(parts).copy_(self.stack.encode(clean, spoiled, seen, Origin("train")))
        return joint

    @property
    def rows(self) -> OwnerRows:
        """What the owner trains on."""
        if self.settings.entity_augmentation:
            return augmented_rows(self.tables, self.seeds)
        return labelled_rows(self.tables)

    def outputs(self, guests: Collection[int] | None = None, hosts: Collection[int] | None = None) -> Tensor:
        """The trained owners' outputs for the test rows: (replicas, test rows, outputs).

        `guests` and `hosts`: numbers, from 0, of those that are there; all unless given.
        """
        present = self.tables.test_present()
        if guests is not None:
            there = torch.tensor([guest in guests for guest in range(len(self.data.guests))])
            present = there.expand(len(self.data.y_test), -1) if present is None else present & there
        joint = self.stack.encode(self.tables.test(), present=present, origin=Origin("test"))
        return self.stack.predict(joint, gaps=present is not None, hosts=hosts)

    def scores(self) -> NDArray[np.float64]:
        """Each replica's test accuracy in percent, or R2 of a regression."""
        return scored(self.tables, self.outputs(), self.stalled)

    def history(self) -> History:
        """Losses so far."""
        owner = self.owner
        labels, held_out = (owner.losses, owner.held_out) if owner else ([], [])
        return History(self.guests.losses, self.hosts.losses, labels, held_out)

    def flows(self) -> list[Flow]:
        """Every round's messages, and the encodings that the owner collects once; nothing is sent back."""
        s = self.settings
        owner_rows, each = self.rows, 1 + s.copies  # hosts make partial passes from what they were sent once
        guests = list(zip((guest.name for guest in self.data.guests), self.stack.latents, strict=True))
        receivers = "owner" if s.hosts == 0 else "host-1" if s.hosts == 1 else f"each of {s.hosts} hosts"
        # Hosts that learn: those without parameters need nothing before the owner asks.
        pushes = s.hosts * s.communicated * self.guests.iterations if self.hosts.wanted else 0
        copies, megabytes = max(1, s.hosts), FLOAT32 / 1e6
        pushed = [
            Flow(name, receivers, "in training", pushes, pushes * s.batch * latent * megabytes, "guests")
            for name, latent in guests
            if pushes
        ]
        encoded = [
            Flow(
                name,
                receivers,
                "once, after it",
                copies,
                copies * owner_rows.sent_by(number) * each * latent * megabytes,
                "guests",
            )
            for number, (name, latent) in enumerate(guests)
        ]
        received = owner_rows.count * (each + s.partial) * self.stack.owner_widths[0] * megabytes
        collected = [Flow(name, "owner", "once, after it", 1, received, "hosts") for name in self.host_names[: s.hosts]]
        return pushed + encoded + collected

    def save(self, folder: Path, extra: dict[str, Any]) -> None:
        """Writes the trained parties into a folder."""
        storage.save(self.stack, folder, extra)

    def state(self) -> State:
        """Everything that is needed to go on from here."""
        hosts, owner = self.hosts, self.owner
        tensors: dict[str, Tensor] = {}
        for name, part in self._stateful():
            tensors |= {f"{name}.{key}": value for key, value in part.state().items()}
        for number, store in enumerate(hosts.stores):
            tensors[f"store.{number}"] = store.batches
        tensors |= {f"holding.{key}": value for key, value in hosts.holding.state().items()}
        tensors |= kept_losses("losses.guests", self.guests.losses) | kept_losses("losses.hosts", hosts.losses)
        if owner is not None:
            tensors |= {f"owner.{key}": value for key, value in owner.state().items()}
        return tensors, {
            "guests": self.guests.epoch,
            "hosts": hosts.epoch,
            "host_steps": hosts.steps,
            "owner": owner.epoch if owner else None,
            "written": hosts.holding.written,
        }

    def restore(self, tensors: dict[str, Tensor], position: dict[str, Any]) -> None:
        """Takes back what `state` gave."""
        guests, hosts = self.guests, self.hosts
        guests.epoch, hosts.epoch, hosts.steps = position["guests"], position["hosts"], position["host_steps"]
        guests.losses = read_losses("losses.guests", tensors, self.device)
        hosts.losses = read_losses("losses.hosts", tensors, self.device)
        hosts.holding.written = position["written"]
        names = [key for key in tensors if key.startswith("holding.")]
        hosts.holding.restore({key.removeprefix("holding."): tensors[key] for key in names})
        for number, store in enumerate(hosts.stores):
            if f"store.{number}" in tensors:
                store.batches.copy_(tensors[f"store.{number}"])
        for name, part in self._stateful():
            part.restore({key: tensors[f"{name}.{key}"] for key in part.state()})
        if position["owner"] is not None:
            owner = self.open_owner()
            owner.epoch = position["owner"]
            names = [key for key in tensors if key.startswith("owner.")]
            owner.restore({key.removeprefix("owner."): tensors[key] for key in names})

    def _stateful(self) -> Iterator[tuple[str, Learner | Chains]]:
        for number, group in enumerate(self.stack.groups):
            if isinstance(group.guest, Guest):
                yield f"guests-{number}", group.guest.learner
        if isinstance(self.stack.host, Host):
            yield "hosts", self.stack.host.learner
        yield "head", self.stack.owner.learner
        chains = {"guest": self.guests.chains, "connection": self.hosts.links, "host": self.hosts.chains}
        yield from ((f"chains.{kind}", one) for kind, one in chains.items() if one is not None)

    def _owner_phase(self, *, lossy: bool) -> OwnerPhase:
        """The owner with all that was collected; `lossy`: some of it may not have come."""
        rows = self.rows
        self.stack.fit_flattenings(self.tables.train())
        gaps = lossy or (rows.present is not None and not isinstance(self.stack.host, Host))
        return OwnerPhase(
            self.stack,
            self.collect(),
            rows.labels,
            self.variants,
            gaps=gaps,
            parts=rows.parts,
            artificial=rows.artificial,
        )

    def _open(self) -> None:
        self.open_owner()

    def _owner_epoch(self) -> None:
        owner = self.open_owner()
        owner.advance()
        if owner.finished:
            owner.finish()


def _without_owner_rates(s: Settings) -> Settings:
    return replace(s, owner_rule=replace(s.owner_rule, rate=0.0), owner_dropout=0.0)


def _check(data: VerticalData, s: Settings) -> None:
    """What cannot be trained is said before anything is."""
    if s.batch > data.rows:
        raise UserError(f"batch {s.batch} is larger than the {data.rows} training rows; at most {data.rows} is right")
    if data.labelled is not None and s.registers == "row":
        raise UserError("registers row: a row must be the same entity at every guest; batch is right for other rows")
    if data.classes is not None and len(np.unique(data.y_train)) < 2:
        raise UserError(f"{data.name}: the labels have one class only; at least two are needed")
    for name in ("batch", "guest_epochs", "owner_epochs", "period"):
        if getattr(s, name) < 1:
            raise UserError(f"{name} {getattr(s, name)}: at least 1 is right")
    for name in ("hosts", "host_epochs"):
        if getattr(s, name) < 0:
            raise UserError(f"{name} {getattr(s, name)}: 0 or more is right")
    check_copies(data, s.copies)
    if s.entity_augmentation:
        check_augmentation(data)
    for name in ("owner_dropout", "smoothing", "guest_noise", "guest_dropout", "host_dropout", "validation"):
        if not 0 <= getattr(s, name) < 1:
            raise UserError(f"{name} {getattr(s, name)}: from 0 to below 1 is right")
    check_partial(s)
    check_release(s.clip, s.noise)
    _check_objectives(s)
    if s.period > s.guest_epochs:
        raise UserError(f"period {s.period}: with {s.guest_epochs} guest epochs nothing would ever be pushed")


def _check_objectives(s: Settings) -> None:
    for name in ("guest_objective", "host_objective"):
        if getattr(s, name) not in get_args(ObjectiveName):
            raise UserError(f"{name} {getattr(s, name)}: {' or '.join(get_args(ObjectiveName))} is right")
    if not 0 <= s.adversary < math.inf:
        raise UserError(f"adversary {s.adversary}: 0 or more is right")
    if s.adversary and s.guest_objective != "simclr":
        raise UserError(
            f"adversary {s.adversary} does not go with guest_objective {s.guest_objective}: its guests learn to be"
            " decoded; simclr is right, or 0"
        )
    if "simclr" not in (s.guest_objective, s.host_objective):
        return
    if s.batch < 2:
        raise UserError("batch 1: SimCLR tells rows of a batch from each other, so 2 at least are right")
    if not LEAST_TEMPERATURE <= s.temperature < math.inf:
        raise UserError(f"temperature {s.temperature}: {LEAST_TEMPERATURE} or more is right")
    if s.guest_objective == "simclr" and s.guest_noise:
        raise UserError(
            f"guest_noise {s.guest_noise} does not go with guest_objective simclr: its guests reconstruct no values;"
            " 0 is right"
        )
    if s.host_objective == "simclr" and (s.hosts == 0 or s.host_model == "concatenate"):
        raise UserError("host_objective simclr: there is no host that learns; leave it out, or have such hosts")
