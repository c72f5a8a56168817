"""A guest while it answers hosts: rows as they are in its table now, by its trained encoder, at any time."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.guest.guest_training import GuestTraining, Rows
from dvfl.federation.party.runtime import Surroundings, worked
from dvfl.federation.protocol.prediction_limits import check_slots
from dvfl.federation.protocol.wire import Ask, BadMessage, Fresh, Here, Refused, decode, encode
from dvfl.federation.transport.accounts import ENCODE
from dvfl.federation.transport.line import GuestLine

_LOOK_S = 1.0  # between two looks at the guest's files


class Files(Protocol):
    """A guest's tables as they may change while it runs."""

    def look(self, schema: dict[str, object]) -> Sequence[Rows] | None:
        """The tables anew where they have changed since the last look."""


class GuestAnswers:
    """Needs nothing but weights that change no more: it waits for nobody, and nobody waits for it."""

    def __init__(self, party: GuestParty, here: Surroundings, files: Files | None) -> None:
        self._party, self._here, self._files = party, here, files
        self._tables: Sequence[Rows] = party.tables
        self._made: _Encoder | None = None
        self._making = asyncio.Lock()
        self._lines: Mapping[str, GuestLine] = {}

    async def serve(self, lines: Mapping[str, GuestLine]) -> None:
        """Answers on all lines from now on."""
        self._lines = lines
        for host, line in lines.items():
            await line.serve(ENCODE, partial(self._answer, host))

    async def watch(self) -> None:
        """Looks whether the guest's files have changed, once it is trained."""
        while True:
            if self._party.trained:
                if self._files is not None:
                    tables = await self._here.work(partial(self._files.look, self._party.schema))
                    self._tables = self._tables if tables is None else tables
                await self._encoder()
            await asyncio.sleep(_LOOK_S)

    async def _answer(self, host: str, data: bytes) -> bytes:
        try:
            asked = decode(data, Ask)
            signed = self._party.signed
            if not len(asked.slots):
                return encode(self._here_now())
            if signed is None or not self._party.trained or asked.run != signed.plan.run:
                return encode(Refused("not trained, or another run"))
            check_slots(signed.plan, asked)
        except BadMessage as error:
            self._party.drop(host, error)
            return encode(Refused(str(error)[:200]))
        try:
            async with asyncio.timeout(asked.left_ms / 1000):
                encoder = await self._encoder()
                task = partial(encoder.encode, asked.slots)
                slots, values = await worked(self._here, len(asked.slots), task)
        except TimeoutError:
            return encode(Refused("too late"))
        return encode(Fresh(self._party.name, asked.run, encoder.hash, encoder.origin, slots, values))

    def _here_now(self) -> Here:
        party, passed = self._party, [line.traffic for line in self._lines.values()]
        return Here(
            guest=party.name,
            run=party.signed.plan.run if party.signed else "",
            origin=self._origin(),
            state=party.state,
            loss=party.loss,
            bytes_sent=sum(one.sent for one in passed),
            bytes_received=sum(one.received for one in passed),
        )

    def _origin(self) -> str:
        """Of what it would answer with; empty where that is not made yet."""
        made = self._made
        return made.origin if made is not None and self._in_force(made) else ""

    def _in_force(self, made: "_Encoder") -> bool:
        return self._party.trained and made.tables is self._tables and made.training is self._party.training

    async def _encoder(self) -> "_Encoder":
        """That of the tables and the training in force, made where it is not yet."""
        async with self._making:
            made, training = self._made, self._party.training
            if made is None or not self._in_force(made):
                assert training is not None and self._party.signed is not None
                slots = self._party.signed.plan.all_slots
                made = self._made = await self._here.work(partial(_Encoder, training, self._tables, slots))
            return made


class _Encoder:
    """A trained guest's network, and where each slot's row lies."""

    def __init__(self, training: GuestTraining, tables: Sequence[Rows], slots: int) -> None:
        self.training, self.tables = training, tables
        self.hash, self.origin = training.encoder_hash, training.origin(tables)
        self._row = np.full(slots, -1, np.int32)  # counted through all tables
        first = 0
        for table in tables:
            self._row[table.slots] = np.arange(first, first + table.rows, dtype=np.int32)
            first += table.rows

    def encode(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Those of the slots that the guest has, and their encodings."""
        rows = self._row[slots]
        has, first = [np.zeros(0, np.int32)], 0
        values = [np.zeros((0, self.training.latent), np.float32)]
        for table in self.tables:
            mine = (rows >= first) & (rows < first + table.rows)
            if mine.any():
                has.append(slots[mine])
                values.append(self.training.sent(table.take(rows[mine] - first), slots[mine], self.hash))
            first += table.rows
        return np.concatenate(has), np.concatenate(values)
