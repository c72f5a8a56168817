"""The owner as a state machine: makes the plan, watches hosts freeze, collects their encodings once, trains its head.

It has no socket, clock, disk or randomness of its own: a service, or a simulated world, passes them in.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from torch import Tensor

from dvfl.errors import RunFailed, UserError
from dvfl.federation.owner.collected_rows import chunk_name
from dvfl.federation.owner.owner_training import Labels, OwnerTraining
from dvfl.federation.party.endings import Fenced
from dvfl.federation.party.owner_settings import OwnerSettings
from dvfl.federation.party.storage import Checkpoint, Storage
from dvfl.federation.protocol.dropping import Dropped
from dvfl.federation.protocol.plan import Phase, Plan, read_plan, sign
from dvfl.federation.protocol.wire import Chunk, Collect, Refused, Status, Tell, decode, encode
from dvfl.parties.calibration import calibration_error, probabilities

_HEAR_S = 30.0  # for hosts to answer a new process, before it decides without them

State = Literal["phase 1", "collecting", "training", "done"]


@dataclass
class Collected:
    """How far the collection from one frozen host is."""

    frozen: str  # the host's hash; another one starts anew
    chunks: int  # of one pass
    passes: int
    have: set[tuple[int, int]] = field(default_factory=set)  # number of the pass, and of the chunk

    @property
    def all(self) -> Iterator[tuple[int, int]]:
        return product(range(self.passes), range(self.chunks))

    @property
    def whole(self) -> bool:
        return len(self.have) == self.passes * self.chunks


class OwnerParty:
    """The owner. `draft` is the plan of a run that has not begun; a saved one goes before it."""

    def __init__(
        self,
        name: str,
        labels: Labels,
        test: Labels | None,
        settings: OwnerSettings,
        draft: Plan,
        key: Ed25519PrivateKey,
        storage: Storage,
        *,
        collect_deadline_s: float,
        now_ms: int,
        log: Callable[[str], None],
    ) -> None:
        self.name, self._labels, self._test, self._settings = name, labels, test, settings
        self._key, self._storage, self._collect_deadline_s = key, storage, collect_deadline_s
        self.statuses: dict[str, Status] = {}
        self.collected: dict[str, Collected] = {}
        self.counts = {"messages_sent": 0, "messages_received": 0, "messages_dropped": 0}
        self.drop = Dropped(self.counts, log)
        self.longest_wait_s = 0.0
        self.state: State = "phase 1"
        self.score: float | None = None  # accuracy in percent, or R2, on rows that were only ever encoded
        self.calibration: dict[str, float | None] | None = None  # temperature, and error on the same rows
        self._training: OwnerTraining | None = None
        self.resumed_done = False  # an earlier process had finished
        self._announced: set[str] = set()  # hosts that this process has heard
        saved = storage.load()
        self._hears_until_ms = now_ms + (1000 * _HEAR_S if saved else 0.0)
        values = saved.values if saved else {}
        self._begun_ms: int = values.get("begun_ms", now_ms)
        self._collecting_ms: int = values.get("collecting_ms", 0)
        self._training_ms: int = values.get("training_ms", 0)
        self._done_ms: int = values.get("done_ms", 0)
        self.restarts: int = values.get("restarts", -1) + 1
        self.resumed_from_epoch: int = values.get("epoch", 0)
        self.signed = sign(draft, "train", 1, key)
        if saved is not None:
            self._restore(saved, draft)
            self.signed = sign(
                self.plan, self.signed.phase, self.signed.revision + 1, key
            )  # an older process is fenced
        self.save()

    @property
    def plan(self) -> Plan:
        return self.signed.plan

    @property
    def epoch(self) -> int:
        """Finished epochs of its own training."""
        return self._training.epoch if self._training else 0

    @property
    def loss(self) -> float | None:
        """Of the last epoch; None before there is one, and where it is no number any more."""
        loss = self._training.loss if self._training and self._training.epoch else math.nan
        return loss if math.isfinite(loss) else None

    @property
    def epochs(self) -> int:
        return self._settings.epochs

    @property
    def classes(self) -> tuple[str, ...] | None:
        return self._labels.classes

    def seconds(self) -> dict[str, float]:
        """How long guests and hosts, then the owner, and all in all took, once it is done."""
        phase1 = (self._collecting_ms - self._begun_ms) / 1000
        own, total = self._done_ms - self._training_ms, self._done_ms - self._begun_ms
        return {"guests": phase1, "hosts": phase1, "owner": own / 1000, "total": total / 1000}

    def tell(self) -> Tell:
        """What every host is told, again and again."""
        self.counts["messages_sent"] += 1
        return Tell(self.signed.text())

    def told(self, host: str, answer: Status | Refused) -> None:
        """Takes a host's answer."""
        self.counts["messages_received"] += 1
        if isinstance(answer, Refused) or answer.run != self.plan.run:
            self.drop(host, answer.reason if isinstance(answer, Refused) else "a status of another run")
            return
        if answer.revision > self.signed.revision:
            if host in self._announced:
                raise Fenced(f"{self.name}: {host} follows a newer process of this owner; only one may run")
            self._sign(self.signed.phase, answer.revision + 1)
        self._announced.add(host)
        self.statuses[host] = answer

    def wanted(self, host: str) -> Collect | None:
        """What to ask this host for next, None where there is nothing."""
        if self.state != "collecting" or host not in self.statuses or not self.statuses[host].frozen:
            return None
        status = self.statuses[host]
        known = self.collected.get(host)
        if known is None or known.frozen != status.frozen:
            self._storage.drop(f"chunk.{host}.")
            known = self.collected[host] = Collected(status.frozen, status.chunks, 1 + self.plan.partial)
        missing = next((one for one in known.all if one not in known.have), None)
        if missing is None:
            return None
        self.counts["messages_sent"] += 1
        pass_number, chunk = missing
        return Collect(self.plan.run, known.frozen, chunk, pass_number)

    def took(self, host: str, answer: Chunk | Refused) -> None:
        """Stores a chunk before the next is asked for."""
        self.counts["messages_received"] += 1
        known = self.collected.get(host)
        if isinstance(answer, Refused) or known is None or not self._fits(host, known, answer):
            self.drop(host, answer.reason if isinstance(answer, Refused) else "not the chunk that was asked for")
            return
        self._storage.put(chunk_name(host, answer.pass_number, answer.chunk), encode(answer))
        known.have.add((answer.pass_number, answer.chunk))

    def settle(self, *, now_ms: int) -> None:
        """Goes on where it is time: when all that is wanted is there, or at a deadline with a quorum."""
        if self.state == "phase 1":
            late = self._late(self._begun_ms, self.plan.phase1_deadline_s, now_ms)
            frozen = [host for host, status in self.statuses.items() if status.frozen]
            if len(frozen) < len(self.plan.hosts) and not late:
                return
            self._check_quorum([host for host in self.plan.hosts if self._worth(host)], "had heard enough guests")
            self._collecting_ms = now_ms
            self.state = "collecting"
            self._sign("collect", self.signed.revision + 1)
        if self.state == "collecting":
            late = self._late(self._collecting_ms, self._collect_deadline_s, now_ms)
            whole = [host for host, known in self.collected.items() if known.whole]
            if len(whole) < len(self.plan.hosts) and not late:
                return
            self._check_quorum(whole, "gave all their encodings")
            self.state, self._training_ms = "training", now_ms
            self._training = self._made_training(whole)
            self.save()

    def train(self, *, now_ms: int) -> None:
        """One epoch of its head; the last one ends the run."""
        assert self._training is not None
        self._training.train()
        if self._training.finished:
            self._score()
            self._done_ms = now_ms
            self.state = "done"
            self._sign("done", self.signed.revision + 1)

    def save(self) -> None:
        """Makes what was done so far safe against a kill."""
        values: dict[str, Any] = {
            "plan": self.signed.text(),
            "state": self.state,
            "begun_ms": self._begun_ms,
            "collecting_ms": self._collecting_ms,
            "restarts": self.restarts,
            "epoch": self.epoch,
            "loss": self.loss,
            "score": self.score,
            "calibration": self.calibration,
            "head": None,
            "training_ms": self._training_ms,
            "done_ms": self._done_ms,
            "counts": self.counts,
            "longest_wait_s": self.longest_wait_s,
            "collected": {host: [known.frozen, known.chunks] for host, known in self.collected.items()},
            "whole": [host for host, known in self.collected.items() if known.whole],
            "statuses": {host: encode(status).hex() for host, status in self.statuses.items()},
        }
        tensors = self._training.state() if self._training else {}
        if self._training is not None and self.state == "done":
            head = self._training.head()
            tensors, values["head"] = {**tensors, **head.tensors()}, head.values()
        self._storage.save(Checkpoint(tensors, values))

    def _sign(self, phase: Phase, revision: int) -> None:
        self.signed = sign(self.plan, phase, revision, self._key)
        self.save()

    def _restore(self, saved: Checkpoint, draft: Plan) -> None:
        values = saved.values
        self.signed = read_plan(values["plan"], self._key.public_key())
        # Parties may have come or gone: the run goes on as it was planned, and the next one has the new ones.
        kept = {name: getattr(self.plan, name) for name in ("run", "federation", "guests", "hosts", "w_g", "w_h")}
        if self.plan != replace(draft, **kept):
            raise UserError(
                f"{self.name}: the settings in federation.toml or party.toml have changed since this run began;"
                " put the old ones back, or remove the state folder for a new run"
            )
        self.resumed_done = values["state"] == "done"
        self.state, self.score, self.calibration = values["state"], values["score"], values["calibration"]
        self.counts.update(values["counts"])
        self.longest_wait_s = values["longest_wait_s"]
        self.statuses = {host: decode(bytes.fromhex(text), Status) for host, text in values["statuses"].items()}
        for host, (frozen, chunks) in values["collected"].items():
            known = self.collected[host] = Collected(frozen, chunks, 1 + self.plan.partial)
            known.have = {one for one in known.all if self._storage.get(chunk_name(host, *one)) is not None}
        if self.state in ("training", "done"):
            self._training = self._made_training([host for host, known in self.collected.items() if known.whole])
            self._training.restore(saved.tensors, values["epoch"], values["loss"] or 0.0)

    def _late(self, since_ms: int, deadline_s: float, now_ms: int) -> bool:
        """Whether a deadline has passed; a process that began after it hears the hosts first."""
        return now_ms >= max(since_ms + 1000 * deadline_s, self._hears_until_ms)

    def _fits(self, host: str, known: Collected, chunk: Chunk) -> bool:
        """Whether a chunk is what was asked for."""
        width = self.plan.host_width
        right = (chunk.host, chunk.run, chunk.frozen) == (host, self.plan.run, known.frozen)
        fits = chunk.values.shape[1] == width and chunk.first + len(chunk.values) <= self.plan.all_slots
        return right and fits and chunk.chunk < known.chunks and chunk.pass_number < known.passes

    def _worth(self, host: str) -> bool:
        status = self.statuses.get(host)
        return status is not None and sum(g.held > 0 for g in status.guests.values()) >= self.plan.quorum_guests

    def _check_quorum(self, hosts: list[str], what: str) -> None:
        if len(hosts) >= self.plan.quorum_hosts:
            return
        missing = [host for host in self.plan.hosts if host not in hosts]
        raise RunFailed(
            f"{self.name}: at the deadline {len(hosts)} of {len(self.plan.hosts)} hosts {what}, the quorum is"
            f" {self.plan.quorum_hosts}; missing: {', '.join(missing)}"
        )

    def _made_training(self, hosts: list[str]) -> OwnerTraining:
        heard = [host in hosts for host in self.plan.hosts]
        joint = torch.stack([self._joint(self._labels, hosts, one) for one in range(1 + self.plan.partial)])
        return OwnerTraining(self.plan, self._settings, self._labels, joint, heard)

    def _joint(self, labels: Labels, hosts: list[str], pass_number: int = 0) -> Tensor:
        """One pass's encodings of labelled slots by these hosts, zeros for the others: (rows, all hosts' widths)."""
        width = self.plan.host_width
        joint = np.zeros((len(labels.slots), len(self.plan.hosts), width), np.float32)
        order = np.argsort(labels.slots)
        slots = labels.slots[order]
        for number, host in enumerate(self.plan.hosts):
            for chunk in range(self.collected[host].chunks if host in hosts else 0):
                stored = self._storage.get(chunk_name(host, pass_number, chunk))
                assert stored is not None
                message = decode(stored, Chunk)
                assert isinstance(message, Chunk)
                first, last = np.searchsorted(slots, [message.first, message.first + len(message.values)])
                joint[order[first:last], number] = message.values[slots[first:last] - message.first]
        return torch.from_numpy(joint.reshape(len(joint), -1))

    def _score(self) -> None:
        """On the rows that were only ever encoded: accuracy in percent, or R2, and how far confidence is from it."""
        assert self._training is not None
        heat = self._training.head().temperature
        classes = self._labels.classes is not None
        self.calibration = {"temperature": heat, "error": None} if classes else None
        if self._test is None:
            return
        whole = [host for host, known in self.collected.items() if known.whole]
        output = self._training.predict(self._joint(self._test, whole)).double()
        y = torch.from_numpy(np.ascontiguousarray(self._test.y))
        if classes:
            self.score = 100 * float((output.argmax(1) == y).double().mean())
            self.calibration = {
                "temperature": heat,
                "error": calibration_error(probabilities(output.numpy(), heat), self._test.y),
            }
        else:
            residual, spread = output[:, 0] - y, y.double() - y.double().mean()
            self.score = 1 - float(residual.square().sum() / spread.square().sum())
