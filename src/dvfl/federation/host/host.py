"""A host as a state machine: keeps what guests push, trains on it at their pace, freezes, and answers the owner.

It has no socket, clock, disk or randomness of its own: a service, or a simulated world, passes them in.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dvfl.errors import UserError
from dvfl.federation.host.host_training import HostTraining
from dvfl.federation.host.known_guests import UNTOLD, GuestKnown, Pinned
from dvfl.federation.party.endings import diverged
from dvfl.federation.party.storage import Checkpoint, Storage
from dvfl.federation.protocol.dropping import Dropped
from dvfl.federation.protocol.plan import BadPlan, Plan, SignedPlan, heard, read_plan
from dvfl.federation.protocol.wire import (
    BadMessage,
    Chunk,
    Collect,
    Encodings,
    GuestSeen,
    Hello,
    Here,
    Refused,
    Status,
    Tell,
    Welcome,
    decode,
)
from dvfl.parties.memory.registers import Stamp

Written = Literal["applied", "superseded", "dropped"]
_COUNTS = ("messages_received", "messages_applied", "messages_superseded", "messages_dropped")


@dataclass(frozen=True)
class Frozen:
    """A frozen host, for predictions: nothing that its guests push changes it."""

    plan: Plan
    hash: str
    training: HostTraining
    guests: dict[str, Pinned]  # those that count, and have not lost their weights since
    incarnations: dict[str, int]
    done: bool  # the owner has all it wanted: tables may take newer rows


class HostParty:
    """One host."""

    def __init__(
        self,
        name: str,
        storage: Storage,
        owner_key: Ed25519PublicKey,
        *,
        federation: str,  # hash of its federation.toml
        now_ms: int,
        log: Callable[[str], None],
    ) -> None:
        self._log, self._federation = log, federation
        self.name, self._storage, self._owner_key = name, storage, owner_key
        self.signed: SignedPlan | None = None
        self.guests: dict[str, GuestKnown] = {}
        self.steps, self.frozen = 0, ""
        self.loss: float | None = None
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.drop = Dropped(self.counts, log)
        self.longest_wait_s = 0.0
        self.up: set[str] = set()  # guests that answered the last question
        self._first_sweep_ms = 0
        self._moved_ms = now_ms  # when a message last came, or the run began
        self._pinned: dict[str, Pinned] = {}  # guests that are in its encodings, once it is frozen
        self._training: HostTraining | None = None
        saved = storage.load()
        self.restarts = (saved.values["restarts"] + 1) if saved else 0
        if saved is not None:
            self._restore(saved)
        self.resumed_from_step = self.steps
        self.save()

    @property
    def state(self) -> str:
        if self.signed is None:
            return "waiting"
        return "frozen" if self.frozen else "training"

    @property
    def earned(self) -> int:
        """Steps that the furthest guest has earned it: one for each batch it would have pushed, had it all slots."""
        if self.signed is None:
            return 0
        plan = self.signed.plan
        iterations = plan.host_iterations
        return max(
            (
                max(0, min(known.epoch, plan.guest_epochs) // plan.period - 1) * iterations
                + (iterations if known.epoch > plan.guest_epochs else min(known.iteration + 1, iterations))
                for known in self.guests.values()
                if known.epoch
            ),
            default=0,
        )

    def hello(self, guest: str, hello: Hello) -> Welcome | Refused:
        """Answers a guest: who is accepted, how far it is here, what is wanted."""
        if self.signed is not None and guest not in self.guests:
            return Refused(f"the plan has no guest '{guest}'; a new run must name it")
        if hello.guest != guest:
            return Refused(f"'{guest}' said hello as '{hello.guest}'")
        known = self.guests.get(guest, GuestKnown())
        fenced = hello.incarnation < known.incarnation
        if not fenced:
            if hello.lineage != known.lineage and known.lineage:
                self._new_lineage(guest, known)
            known.lineage, known.incarnation = hello.lineage, hello.incarnation
            known.told |= {name: getattr(hello, name) for name in UNTOLD if hasattr(hello, name)}
        return Welcome(
            host=self.name,
            lineage=known.lineage,
            incarnation=known.incarnation,
            epoch=known.epoch,
            iteration=known.iteration,
            refill=known.refill and not self.frozen,
            fenced=fenced,
            swept=known.whole,
            frozen=bool(self.frozen),
            plan=self.signed.text() if self.signed else "",
        )

    def seen(self, guest: str, here: Here) -> None:
        """Takes note of what a guest says of itself between two hellos."""
        known = self.guests.get(guest)
        if known is not None and known.told and here.guest == guest:
            told = ("state", "loss", "bytes_sent", "bytes_received")
            known.told |= {name: getattr(here, name) for name in told}

    def write(self, guest: str, data: bytes, stream: str, sequence: int, *, now_ms: int) -> Written:
        """Takes a message that was read from a guest's stream; what is wrong with it is counted, never believed."""
        self.counts["messages_received"] += 1
        known = self.guests.get(guest)
        if known is not None:
            known.stream, known.sequence = stream, sequence
        try:
            message = decode(data, Encodings)
            assert isinstance(message, Encodings)
            written = self._apply(guest, message, now_ms)
        except BadMessage as error:
            self.drop(guest, error)
            return "dropped"
        self.counts[f"messages_{written}"] += 1
        return written

    def place(self, guest: str) -> tuple[str, int]:
        """How far it has read a guest's stream: the stream's identity and the last message's number."""
        known = self.guests.get(guest, GuestKnown())
        return known.stream, known.sequence

    def lost(self, guest: str, stream: str) -> None:
        """The guest's stream is a new one, or messages are gone that were not read: unless it is the first, a refill
        mends it."""
        known = self.guests.get(guest)
        if known is not None:
            known.stream, known.sequence, known.refill = stream, 0, known.refill or known.stream != ""

    def allowed(self, *, now_ms: int) -> int:
        """Steps it may make now: what guests have earned it, or all once they are done or silent for `stall_s`."""
        if self.signed is None or self.frozen or self._training is None or not self._training.table.known:
            return 0
        plan = self.signed.plan
        done = all(known.final for known in self.guests.values())
        silent = now_ms - self._moved_ms >= 1000 * plan.stall_s
        limit = plan.host_steps if done or silent else min(self.earned, plan.host_steps)
        return max(0, limit - self.steps)

    def train(self, count: int) -> None:
        """Makes so many steps."""
        assert self._training is not None
        self.loss = self._training.steps(self.steps, count)
        if not math.isfinite(self.loss):
            raise UserError(diverged(self.name, "host"))
        self.steps += count

    def settle(self, *, now_ms: int) -> None:
        """Freezes if it is time: all spent and swept, `sweep_deadline_s` after the first whole sweep, or told to."""
        if self.signed is None or self.frozen or self._training is None:
            return
        plan = self.signed.plan
        whole = [known.whole for known in self.guests.values()]
        if any(whole) and not self._first_sweep_ms:
            self._first_sweep_ms = now_ms
        late = self._first_sweep_ms and now_ms - self._first_sweep_ms >= 1000 * plan.sweep_deadline_s
        told = self.signed.phase != "train" and not any(known.refill for known in self.guests.values())
        if (all(whole) and self.steps >= plan.host_steps) or late or told:
            made_of = [(name, own.lineage, own.sweep, len(own.swept)) for name, own in self.guests.items()]
            # Whose sweep is not whole is absent everywhere, as it will be in predictions.
            counted = [name for name, own in self.guests.items() if own.whole] or list(self.guests)
            known = {name: self.guests[name] for name in counted}
            self._pinned = {name: own.pin() for name, own in known.items()}
            self.frozen = self._training.hash(made_of)
            self.save()

    def tell(self, tell: Tell, *, now_ms: int) -> Status | Refused:
        """Takes the owner's plan where it is newer, and says how things stand."""
        try:
            kept = heard(self.signed, tell.plan, self._owner_key)
        except BadPlan as error:
            self.drop("the owner", error)
            return Refused(str(error))
        if self.signed is None or self.signed.plan.run != kept.plan.run:
            if self.name not in kept.plan.hosts:
                return Refused(f"the plan has no host '{self.name}'")
            self._begin(kept, now_ms)
        elif kept != self.signed:
            self.signed = kept
            self.save()
        return self.status(now_ms=now_ms)

    def status(self, *, now_ms: int) -> Status:
        """How things stand."""
        assert self.signed is not None
        plan = self.signed.plan
        return Status(
            host=self.name,
            run=plan.run,
            revision=self.signed.revision,
            state=self.state,
            steps=self.steps,
            budget=plan.host_steps,
            earned=self.earned,
            loss=self.loss,
            frozen=self.frozen,
            chunks=self._training.chunks if self._training and self.frozen else 0,
            restarts=self.restarts,
            resumed_from_step=self.resumed_from_step,
            longest_wait_s=self.longest_wait_s,
            guests={name: self._seen(name, known, now_ms) for name, known in self.guests.items()},
            **self.counts,
        )

    def collect(self, collect: Collect) -> Chunk | Refused:
        """The encodings of consecutive slots, from frozen weights only."""
        if self.signed is None or collect.run != self.signed.plan.run:
            return Refused("another run")
        if not self.frozen or collect.frozen != self.frozen:
            return Refused("not frozen" if not self.frozen else "frozen anew: another hash")
        assert self._training is not None
        if collect.chunk >= self._training.chunks:
            return Refused(f"chunk {collect.chunk} of {self._training.chunks}")
        if collect.pass_number > self.signed.plan.partial:
            return Refused(f"pass {collect.pass_number} of {self.signed.plan.partial}")
        number, run = collect.pass_number, self.signed.plan.run
        first, values, present = self._training.chunk(collect.chunk, self._pinned, number)
        return Chunk(self.name, run, self.frozen, collect.chunk, first, values, present, number)

    def answering(self) -> Frozen | None:
        """What predictions are made from; None before it is frozen."""
        if self.signed is None or self._training is None or not self.frozen:
            return None
        # A guest that has lost its weights is another: what it had sent before is worth nothing with its new rows.
        kept = {name: own for name, own in self._pinned.items() if self.guests[name].lineage == own.lineage}
        incarnations = {name: self.guests[name].incarnation for name in kept}
        done = self.signed.phase == "done"
        return Frozen(self.signed.plan, self.frozen, self._training, kept, incarnations, done)

    @property
    def pinned(self) -> int:
        """How many guests are in a frozen host's encodings, whatever has become of them since."""
        return len(self._pinned)

    def refreshed(self, guest: str, *, now_ms: int) -> None:
        """Takes note of rows that a guest has just encoded anew."""
        self.guests[guest].arrived_ms = now_ms

    def save(self) -> None:
        """Makes what was done so far safe against a kill."""
        values = {
            "restarts": self.restarts,
            "steps": self.steps,
            "loss": self.loss,
            "frozen": self.frozen,
            "first_sweep_ms": self._first_sweep_ms,
            "moved_ms": self._moved_ms,
            "pinned": {name: vars(own) for name, own in self._pinned.items()},
            "counts": self.counts,
            "longest_wait_s": self.longest_wait_s,
            "plan": self.signed.text() if self.signed else "",
            "guests": {name: {**vars(known), "swept": sorted(known.swept)} for name, known in self.guests.items()},
        }
        self._storage.save(Checkpoint(self._training.state() if self._training else {}, values))

    def close(self) -> None:
        """Leaves in good order, after saving."""
        self._storage.close()

    def _apply(self, guest: str, message: Encodings, now_ms: int) -> Written:
        known, trainer = self.guests.get(guest), self._training
        if known is None or trainer is None or self.signed is None or message.run != self.signed.plan.run:
            raise BadMessage("no such run or guest here")
        # A process that was killed may have heard its hello and not saved it; the stream is the guest's alone.
        known.lineage = known.lineage or message.lineage
        if message.guest != guest or message.lineage != known.lineage:
            raise BadMessage("another guest's, or of another lineage")
        if self.frozen:
            return "superseded"
        stamp = Stamp(message.incarnation, message.epoch, message.iteration)
        trainer.check(guest, message)
        wrote = trainer.register(guest).write(message.slots, message.values, stamp)
        known.incarnation = max(known.incarnation, message.incarnation)
        if (message.epoch, message.iteration) > (known.epoch, known.iteration):
            known.epoch, known.iteration = message.epoch, message.iteration
        known.arrived_ms = self._moved_ms = now_ms
        if message.incarnation > known.swept_by:  # of another process: its rows replace what came before
            known.swept_by, known.swept = message.incarnation, set()
        if message.sweep is not None and message.incarnation == known.swept_by:
            self._swept(known, message)
        return "applied" if wrote else "superseded"

    def _swept(self, known: GuestKnown, message: Encodings) -> None:
        assert message.sweep is not None and self.signed is not None
        sweep, final = message.sweep, message.epoch > self.signed.plan.guest_epochs
        if (known.sweep, known.origin, known.parts, known.final) != (sweep.encoder, sweep.origin, sweep.parts, final):
            known.sweep, known.origin, known.parts, known.final = sweep.encoder, sweep.origin, sweep.parts, final
            known.swept = set()
        known.swept.add(sweep.part)
        known.refill = known.refill and len(known.swept) < known.parts

    def _new_lineage(self, guest: str, known: GuestKnown) -> None:
        """A guest that lost its weights: what it sent with them means nothing any more."""
        if self._training is not None and not self.frozen:
            self._training.register(guest).void()
        fresh = GuestKnown(stream=known.stream, refill=known.refill)
        known.__dict__.update(fresh.__dict__)

    def _begin(self, signed: SignedPlan, now_ms: int) -> None:
        self.signed, self._training = signed, HostTraining(self.name, signed.plan, self._storage, fresh=True)
        if other := signed.plan.other_file(self._federation):
            self._log(other)
        # Where the run is past its training, all that was sent here is lost.
        lost = signed.phase != "train"
        known = {guest.name: self.guests.get(guest.name, GuestKnown()) for guest in signed.plan.guests}
        self.guests = {
            name: replace(one, epoch=0, iteration=0, sweep="", final=False, refill=lost) for name, one in known.items()
        }
        self.steps, self.frozen, self.loss, self._first_sweep_ms, self._moved_ms = 0, "", None, 0, now_ms
        self.save()

    def _restore(self, saved: Checkpoint) -> None:
        values = saved.values
        self.steps, self.loss, self.frozen = values["steps"], values["loss"], values["frozen"]
        self.counts.update(values["counts"])
        self.longest_wait_s = values["longest_wait_s"]
        self._first_sweep_ms, self._moved_ms = values["first_sweep_ms"], values["moved_ms"]
        self._pinned = {name: Pinned(**own) for name, own in values["pinned"].items()}
        self.guests = {
            name: GuestKnown(**{**known, "swept": set(known["swept"])}) for name, known in values["guests"].items()
        }
        if not values["plan"]:
            return
        self.signed = read_plan(values["plan"], self._owner_key)
        self._training = HostTraining(self.name, self.signed.plan, self._storage, fresh=False)
        self._training.restore(saved.tensors)
        for guest in self._training.torn:
            known = self.guests[guest]
            known.refill, known.swept = True, set()
            # Frozen no more: the same sweeps and weights give the same hash again.
            self.frozen, self._first_sweep_ms = "", 0

    def _seen(self, name: str, known: GuestKnown, now_ms: int) -> GuestSeen:
        held = self._training.register(name).count if self._training else 0
        told = {**UNTOLD, **known.told}
        return GuestSeen(
            epoch=known.epoch,
            iteration=known.iteration,
            held=held,
            age_s=(now_ms - known.arrived_ms) / 1000 if known.arrived_ms else -1.0,
            sweep=known.sweep if known.whole else "",
            up=name in self.up,
            **told,
        )
