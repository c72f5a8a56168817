"""Row registers: the newest encoding of each slot that a guest has written to a host, and a host's inputs from them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dvfl.parties.memory.registers import Stamp

Floats = NDArray[np.float32]
Slots = NDArray[np.int32]
Mask = NDArray[np.bool_]


class RowRegister:
    """What one guest wrote to one host, slot by slot. Late, repeated and reordered writes need no special case.

    The arrays are the caller's: `values` (slots, width), and the stamp of each slot, `incarnations` (0: never written)
    and `steps` (epoch << 32 | iteration). Slots below `train` (None: all) are for training, the others for encoding.
    """

    def __init__(
        self, values: Floats, incarnations: NDArray[np.int64], steps: NDArray[np.int64], *, train: int | None = None
    ) -> None:
        # Views without their files' class: numpy indexes memory-mapped arrays several times slower as what they are.
        self.values, self.incarnations, self.steps = map(np.asarray, (values, incarnations, steps))
        self.train = len(values) if train is None else train
        held = np.flatnonzero(incarnations)
        self.count = len(held)  # slots held
        self.voids = 0  # how often all was forgotten
        self._drawable = np.empty(self.train, np.int32)
        self._drawables = 0
        self._let_draw(held)

    @staticmethod
    def empty(slots: int, width: int, *, train: int | None = None) -> "RowRegister":
        """A register in plain memory, never written."""
        values = np.zeros((slots, width), np.float32)
        return RowRegister(values, np.zeros(slots, np.int64), np.zeros(slots, np.int64), train=train)

    @property
    def held(self) -> Mask:
        """Which slots are held."""
        return self.incarnations > 0

    @property
    def drawable(self) -> Slots:
        """The training slots that are held, in the order in which they first came."""
        return self._drawable[: self._drawables]

    def write(self, slots: Slots, values: Floats, stamp: Stamp) -> int:
        """Takes the rows that are newer than what is held; how many."""
        if stamp.incarnation < 1:
            raise ValueError(f"incarnation {stamp.incarnation}: 1 or more is right, 0 marks what was never written")
        step = stamp.epoch << 32 | stamp.iteration
        places = slots.astype(np.intp)  # once, or numpy does it in every line below
        before = self.incarnations[places]
        newer = (before < stamp.incarnation) | ((before == stamp.incarnation) & (self.steps[places] < step))
        if not newer.all():
            places, values, before = places[newer], values[newer], before[newer]
        # In this order: a process that dies in between leaves no stamp that is newer than its row.
        self.values[places] = values
        self.steps[places] = step
        self.incarnations[places] = stamp.incarnation
        if not before.all():
            fresh = np.unique(places[before == 0])  # a slot may stand in a message twice
            self.count += len(fresh)
            self._let_draw(fresh)
        return len(places)

    def void(self) -> None:
        """Forgets everything: the guest that wrote it is another now."""
        self.incarnations[:], self.steps[:], self.values[:] = 0, 0, 0
        self.count = self._drawables = 0
        self.voids += 1

    def take(self, slots: Slots) -> tuple[Floats, Mask]:
        """The encodings (n, width) of slots, and which of them are held (n,); zeros for the others."""
        places = slots.astype(np.intp)
        return self.values.take(places, axis=0), self.incarnations[places] > 0

    def stand_in(self, slots: Slots, generator: np.random.Generator) -> tuple[Floats, bool]:
        """The encodings (n, width) of slots to train on, and whether the guest was heard at all; zeros if not.

        A slot that is not held is replaced by a training slot that is, drawn at random.
        """
        if not self._drawables:
            return np.zeros((len(slots), self.values.shape[1]), np.float32), False
        places = slots.astype(np.intp)
        held = self.incarnations[places]
        if not held.all():
            others = self._drawable[generator.integers(self._drawables, size=len(places))]
            places = np.where(held, places, others)
        return self.values.take(places, axis=0), True

    def _let_draw(self, slots: NDArray[np.integer]) -> None:
        new = slots[slots < self.train]
        self._drawable[self._drawables : self._drawables + len(new)] = new
        self._drawables += len(new)


class HostTable:
    """A host's row registers in the order of the guests, who share one numbering of slots."""

    def __init__(self, registers: Sequence[RowRegister]) -> None:
        self.registers = list(registers)
        self._ends = np.cumsum([register.values.shape[1] for register in self.registers]).tolist()
        self._forget()

    @property
    def known(self) -> int:
        """How many training slots at least one guest has written."""
        self._catch_up()
        return self._count

    def draw(self, batch: int, generator: np.random.Generator) -> tuple[Floats, Mask]:
        """A training input: `b` (1, batch, W_g), and which guests are in it, `present` (1, batch, guests).

        Slots are drawn from those that at least one guest has written; a guest that lacks one contributes another of
        its own, and a guest that was never heard is absent.
        """
        known = self.known
        chosen = self._known[generator.integers(known, size=batch)] if known else np.zeros(batch, np.int32)
        b, present = self._blank(batch)
        for number, register in enumerate(self.registers):
            b[0, :, self._columns(number)], present[0, :, number] = register.stand_in(chosen, generator)
        return b, present

    def inputs(self, slots: Slots) -> tuple[Floats, Mask]:
        """An input to encode: `b` (1, n, W_g) of these slots, and who holds them, `present` (1, n, guests)."""
        b, present = self._blank(len(slots))
        for number, register in enumerate(self.registers):
            b[0, :, self._columns(number)], present[0, :, number] = register.take(slots)
        return b, present

    def _blank(self, rows: int) -> tuple[Floats, Mask]:
        return np.empty((1, rows, self._ends[-1]), np.float32), np.empty((1, rows, len(self.registers)), bool)

    def _columns(self, number: int) -> slice:
        return slice(self._ends[number] - self.registers[number].values.shape[1], self._ends[number])

    def _catch_up(self) -> None:
        """Takes note of the slots that came since the last time."""
        if any(register.voids != voids for register, voids in zip(self.registers, self._voids, strict=True)):
            self._forget()
        for number, register in enumerate(self.registers):
            drawable = register.drawable
            if len(drawable) > self._seen[number]:
                new = drawable[self._seen[number] :]
                new = new[~self._is_known[new]]
                self._is_known[new] = True
                self._known[self._count : self._count + len(new)] = new
                self._count += len(new)
                self._seen[number] = len(drawable)

    def _forget(self) -> None:
        train = self.registers[0].train
        self._known, self._is_known = np.empty(train, np.int32), np.zeros(train, bool)
        self._count = 0
        self._seen = [0] * len(self.registers)  # of each guest's drawable slots
        self._voids = [register.voids for register in self.registers]
