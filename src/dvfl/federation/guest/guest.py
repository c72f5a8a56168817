"""A guest as a state machine: trains on its own rows, says what to push, and can be killed at any time.

It has no socket, clock, disk or randomness of its own: a service, or a simulated world, passes them in.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from numpy.typing import NDArray

from dvfl.errors import UserError
from dvfl.federation.guest.guest_release import Release
from dvfl.federation.guest.guest_training import GuestTraining, Rows
from dvfl.federation.party.endings import Fenced, diverged
from dvfl.federation.party.storage import Checkpoint, Storage
from dvfl.federation.protocol.dropping import Dropped
from dvfl.federation.protocol.plan import BadPlan, SignedPlan, heard, read_plan
from dvfl.federation.protocol.wire import Encodings, Hello, Sweep, Welcome


@dataclass(frozen=True)
class HostSeen:
    """What a guest knows of a host from its last welcome."""

    ready: bool  # it has the plan, and knows this guest: what is pushed to it will be read
    swept: bool
    refill: bool
    frozen: bool


class GuestParty:
    """One guest. `train` gives the next message for all hosts; `sweep` and `refill` give those for one of them."""

    def __init__(
        self,
        name: str,
        table: Rows,
        encode_only: Rows | None,
        storage: Storage,
        owner_key: Ed25519PublicKey,
        *,
        federation: str,  # hash of its federation.toml
        now_ms: int,
        log: Callable[[str], None],
        lineage: int,  # a fresh random number, for where no weights were saved
        release: Release | None = None,  # what is done to encodings before they leave
    ) -> None:
        self._log, self._federation, self._release = log, federation, release
        self.name, self._table, self._encode_only, self._storage = name, table, encode_only, storage
        self._owner_key = owner_key
        self.signed: SignedPlan | None = None
        self.hosts: dict[str, HostSeen] = {}
        self.epoch = self.iteration = 0  # finished epochs, and finished iterations of the one that runs
        self.losses: list[float] = []
        self.counts = {"messages_sent": 0, "messages_received": 0, "messages_dropped": 0}
        self.drop = Dropped(self.counts, log)
        self.longest_wait_s = 0.0
        self._loss = 0.0
        self.training: GuestTraining | None = None
        saved = storage.load()
        values = saved.values if saved else {}
        self.lineage: int = values.get("lineage", lineage)
        self.incarnation: int = max(values.get("incarnation", 0) + 1, now_ms)
        self.restarts: int = values.get("restarts", -1) + 1
        self.resumed_from_epoch: int = values.get("epoch", 0)
        if saved is not None:
            self._restore(saved)
        self.save()

    @property
    def state(self) -> str:
        if self.signed is None:
            return "waiting"
        if not self.trained:
            return "training"
        return "done" if self.hosts and all(host.swept or host.frozen for host in self.hosts.values()) else "sweeping"

    @property
    def tables(self) -> list[Rows]:
        """Its rows, and those that are only ever encoded."""
        return [self._table] + ([] if self._encode_only is None else [self._encode_only])

    @property
    def schema(self) -> dict[str, Any]:
        """The columns that it trained on."""
        return self._table.schema

    @property
    def encoder_hash(self) -> str:
        """Which model makes its encodings; empty before there is one."""
        return self.training.encoder_hash if self.training else ""

    @property
    def loss(self) -> float | None:
        """The mean of the epoch that runs, so far, or of the last one."""
        if self.iteration:
            return self._loss / self.iteration
        return self.losses[-1] if self.losses else None

    @property
    def trained(self) -> bool:
        return self.signed is not None and self.epoch >= self.signed.plan.guest_epochs

    def hello(self) -> Hello:
        """What it says to a host, at connect and from time to time."""
        return Hello(
            run=self.signed.plan.run if self.signed else "",
            guest=self.name,
            lineage=self.lineage,
            incarnation=self.incarnation,
            epoch=self.epoch,
            iteration=self.iteration,
            state=self.state,
            revision=self.signed.revision if self.signed else 0,
            restarts=self.restarts,
            resumed_from_epoch=self.resumed_from_epoch,
            loss=self.loss,
            longest_wait_s=self.longest_wait_s,
            **self.counts,
        )

    def welcomed(self, host: str, welcome: Welcome) -> None:
        """Takes a host's answer. A plan that does not verify is as good as none."""
        self.counts["messages_received"] += 1
        if welcome.fenced:
            raise Fenced(
                f"{self.name}: {host} knows a newer process of this guest, with the same name; only one may run"
            )
        self.hosts[host] = HostSeen(self._known_at(welcome), welcome.swept, welcome.refill, welcome.frozen)
        if welcome.plan:
            try:
                self._take(heard(self.signed, welcome.plan, self._owner_key))
            except BadPlan as error:
                self.drop(host, error)

    def train(self) -> Encodings | None:
        """The next rounds, as many as one message holds; that message, in an epoch that pushes."""
        assert self.signed is not None and self.training is not None
        epoch = self.epoch + 1
        slots, codes, losses = self.training.rounds(self.epoch, self.iteration)
        self._loss += float(np.sum(losses))
        if not math.isfinite(self._loss):
            raise UserError(diverged(self.name, "guest"))
        self.iteration += len(losses)
        last = self.iteration - 1
        if self.iteration == self.training.iterations:
            self.losses.append(self._loss / self.iteration)
            self.epoch, self.iteration, self._loss = epoch, 0, 0.0
        return None if epoch % self.signed.plan.period else self._message(epoch, last, slots, codes)

    def sweep(self) -> Iterator[Encodings]:
        """Every slot by the encoder as it is: once trained, with the rows that are only ever encoded, the final one.

        Before that, it refills a host that has lost what it held.
        """
        assert self.signed is not None and self.training is not None
        final = self.trained
        tables = self.tables if final else [self._table]
        parts = sum(-(-table.rows // self.training.rows_at_once) for table in tables)
        epoch, iteration = (self.signed.plan.guest_epochs + 1, 0) if final else (self.epoch + 1, self.iteration)
        encoder, origin, part = self.training.encoder_hash, self.training.origin(tables), 0
        for table in tables:
            for slots, codes in self.training.encoded(table):
                yield self._message(epoch, iteration, slots, codes, Sweep(part, parts, encoder, origin))
                part += 1

    def save(self) -> None:
        """Makes what was done so far safe against a kill."""
        values = {
            "lineage": self.lineage,
            "incarnation": self.incarnation,
            "restarts": self.restarts,
            "epoch": self.epoch,
            "iteration": self.iteration,
            "loss": self._loss,
            "losses": self.losses,
            "counts": self.counts,
            "longest_wait_s": self.longest_wait_s,
            "schema": self._table.schema,
            "plan": self.signed.text() if self.signed else "",
        }
        self._storage.save(Checkpoint(self.training.guest.learner.state() if self.training else {}, values))

    def _known_at(self, welcome: Welcome) -> bool:
        return bool(welcome.plan) and (welcome.lineage, welcome.incarnation) == (self.lineage, self.incarnation)

    def _take(self, kept: SignedPlan) -> None:
        if self.signed is not None and self.signed.plan.run == kept.plan.run:
            self.signed = kept
            return
        if self.signed is not None:  # the run it knew is retired: a new one begins
            self.epoch, self.iteration, self._loss, self.losses, self.hosts = 0, 0, 0.0, [], {}
        self.training, self.signed = GuestTraining(self.name, kept.plan, self._table, self._release), kept
        if other := kept.plan.other_file(self._federation):
            self._log(other)
        self.save()

    def _restore(self, saved: Checkpoint) -> None:
        values = saved.values
        self.epoch, self.iteration, self._loss = values["epoch"], values["iteration"], values["loss"]
        self.losses = values["losses"]
        self.counts.update(values["counts"])
        self.longest_wait_s = values["longest_wait_s"]
        if values["plan"]:
            self.signed = read_plan(values["plan"], self._owner_key)
            self.training = GuestTraining(self.name, self.signed.plan, self._table, self._release)
            self.training.guest.learner.restore(saved.tensors)

    def _message(
        self,
        epoch: int,
        iteration: int,
        slots: NDArray[np.int32],
        codes: NDArray[np.float32],
        sweep: Sweep | None = None,
    ) -> Encodings:
        assert self.signed is not None
        run = self.signed.plan.run
        return Encodings(run, self.name, self.lineage, self.incarnation, epoch, iteration, sweep, slots, codes)
