"""A real guest's network on its own table: rounds, whole tables encoded, and which model made an encoding."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dvfl.errors import UserError
from dvfl.federation.guest.guest_release import Release
from dvfl.federation.protocol.plan import Plan
from dvfl.parties.guest import Guest
from dvfl.parties.numerics.randomness import PATTERNS, batches, numpy_generator, patterns, torch_generator
from dvfl.parties.numerics.schedules import rates
from dvfl.parties.objectives.augmentation import Augmentation, image_copies, table_copies
from dvfl.parties.objectives.objective import temperature_of
from dvfl.parties.party_networks import guest_objective
from dvfl.release.flattening import Flattening

_FLATTENED_BY = 20_000  # rows, at most, that tell how strong each direction of an encoding is
PACKED = 160_000  # bytes of a message, about: several batches travel together


class Rows(Protocol):
    """A guest's table: standardised values, and the slot of every row."""

    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def slots(self) -> NDArray[np.int32]: ...
    @property
    def schema(self) -> dict[str, Any]: ...
    @property
    def identity(self) -> str:
        """Another one whenever a row or a slot is."""

    def take(self, rows: NDArray[Any]) -> NDArray[np.float32]: ...


class GuestTraining:
    """The network that the plan gives a guest, on its table; with a `release`, nothing leaves but by it."""

    def __init__(self, name: str, plan: Plan, table: Rows, release: Release | None = None) -> None:
        names = [guest.name for guest in plan.guests]
        if name not in names:
            raise UserError(f"the plan has no guest '{name}' ({', '.join(names)}); a new run must name it")
        self._plan, self._table, self._number, self._release = plan, table, names.index(name), release
        planned = plan.guests[self._number]
        if planned.columns != table.width:
            raise UserError(
                f"{name}: its table gives {table.width} columns and the plan says {planned.columns};"
                " the table from when the federation was made is right"
            )
        objective = guest_objective(
            plan.sizes,
            self._number,
            planned.columns,
            unit=planned.unit,
            temperature=temperature_of(plan.guest_objective, plan.temperature),
            adversary=plan.adversary,
        )
        parameters = objective.init(torch_generator(plan.seed, "guest", self._number))[None]
        self.guest = Guest(objective, parameters, plan.guest_rule)
        self._batch = min(plan.batch, table.rows)
        self.iterations = -(-table.rows // self._batch)
        self.rows_at_once = max(self._batch, PACKED // (4 * plan.sizes.guest_latent[self._number] + 4))
        self._epoch = -1
        self._flat: tuple[str, Flattening] | None = None  # and the encoder that it was fitted to

    @torch.no_grad()
    def rounds(self, epoch: int, first: int) -> tuple[NDArray[np.int32], NDArray[np.float32], list[float]]:
        """Trains for as many rounds as one message holds: slots, encodings made before each update, losses."""
        self._open(epoch)
        codes, losses = [], []
        order = self._order[first : first + self.rows_at_once // self._batch]
        for number, rows in enumerate(order, first):
            x = torch.from_numpy(self._table.take(rows))[None]
            seen = self._seen(x, number) if self._luck is not None else None
            encoder = "" if self._release is None else self.encoder_hash  # as it is before the update
            code, loss = self.guest.step(x, float(self._rates[number]), None, seen)
            flat = None if self._flat is None else self._flat[1]  # of the epoch's beginning
            codes.append(self._leaving(code[0].numpy(), x[0].numpy(), self._table.slots[rows], encoder, flat))
            losses.append(float(loss))
        slots, encodings = self._table.slots[order.ravel()], np.concatenate(codes)
        # An epoch's last batch is completed with rows of its first, which may be in the same message: the later counts.
        _, newest = np.unique(slots[::-1], return_index=True)
        if len(newest) < len(slots):
            keep = np.sort(len(slots) - 1 - newest)
            slots, encodings = slots[keep], encodings[keep]
        return slots, encodings, losses

    def encoded(self, table: Rows) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float32]]]:
        """A whole table's slots and encodings, a message's worth at a time."""
        for start in range(0, table.rows, self.rows_at_once):
            rows = np.arange(start, min(table.rows, start + self.rows_at_once))
            yield table.slots[rows], self.sent(table.take(rows), table.slots[rows], self.encoder_hash)

    @torch.no_grad()
    def sent(self, x: NDArray[np.float32], slots: NDArray[np.int32], encoder: str) -> NDArray[np.float32]:
        """The encodings of some rows as they leave the guest; `encoder` is its hash, for whoever has it at hand."""
        codes: NDArray[np.float32] = self.guest.encode(torch.from_numpy(x)[None])[0].numpy()
        return self._leaving(codes, x, slots, encoder, self._flattening(encoder))

    @property
    def latent(self) -> int:
        return self._plan.sizes.guest_latent[self._number]

    @property
    def encoder_hash(self) -> str:
        """Which model makes the encodings."""
        cut = self.guest.objective.encoder.size
        return hashlib.sha256(self.guest.learner.parameters[:, :cut].contiguous().numpy().tobytes()).hexdigest()

    def origin(self, tables: Sequence[Rows]) -> str:
        """Which weights and tables encodings are made from, and what is done to them: of one origin, the same numbers.

        All weights have a part in it. Nobody else has them, so nobody can tell from it what is in the tables.
        """
        digest = hashlib.sha256(self.guest.learner.parameters.contiguous().numpy().tobytes())
        if self._release is not None:
            digest.update(self._release.name.encode() + self._release.secret)
        for table in tables:
            digest.update(table.identity.encode())
        return digest.hexdigest()

    def _leaving(
        self,
        codes: NDArray[np.float32],
        x: NDArray[np.float32],
        slots: NDArray[np.int32],
        encoder: str,
        flat: Flattening | None,
    ) -> NDArray[np.float32]:
        return codes if self._release is None else self._release.leaving(codes, x, slots, encoder, flat)

    def _flattening(self, encoder: str) -> Flattening | None:
        """Of the guest's own rows by the encoder as it is, whose hash is given; None where encodings are not flat."""
        if self._release is None or not self._release.flatten:
            return None
        if self._flat is None or self._flat[0] != encoder:
            some = np.arange(0, self._table.rows, -(-self._table.rows // _FLATTENED_BY))  # tables may be sorted
            x = torch.from_numpy(self._table.take(some))
            self._flat = encoder, Flattening.of(self.guest.encode(x[None])[0])
        return self._flat[1]

    def _seen(self, x: Tensor, number: int) -> Tensor:
        """What it sees in place of a batch in a round: as much as is not hidden, or altered copies to compare."""
        assert self._luck is not None
        luck = torch.from_numpy(self._luck[number])
        return self._copies.copies(x, luck[None]) if self.guest.objective.copies > 1 else x * self._masks[luck]

    @cached_property
    def _masks(self) -> Tensor:
        plan = self._plan
        return patterns(PATTERNS, self._table.width, 1 - plan.guest_noise, plan.seed, "guest-noise", self._number)

    @cached_property
    def _copies(self) -> Augmentation:
        strip = self._plan.guests[self._number].strip
        if strip is not None:
            return image_copies([strip], torch.device("cpu"))
        return table_copies(self._table.width, self._batch, torch.device("cpu"))

    def _open(self, epoch: int) -> None:
        """Draws an epoch's row order, as the simulator draws it, its learning rates, and what it hides."""
        if epoch == self._epoch:
            return
        plan, count = self._plan, self.iterations
        self._order = batches(self._table.rows, self._batch, plan.seed, "rows", epoch)
        self._rates = rates(plan.guest_schedule, plan.guest_rule.rate, epoch * count, count, plan.guest_epochs * count)
        draw = numpy_generator(plan.seed, "guest-noise", self._number, epoch)
        copies, altered = self.guest.objective.copies, self.guest.objective.copies > 1 or plan.guest_noise
        self._luck = draw.integers(PATTERNS, size=(count, copies * self._batch)) if altered else None
        self._epoch = epoch
        if self._release is not None:
            self._flattening(self.encoder_hash)
