"""A host while it answers the owner's predictions: asks the guests that are there, and waits for none past its time."""

import asyncio
import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dvfl.federation.host.freshness import UNKNOWN, Vouched, Vouching
from dvfl.federation.host.frozen_answers import Gathered, check_fresh, gathered, keep
from dvfl.federation.host.host import Frozen, HostParty
from dvfl.federation.host.host_screening import SHARE, suspects, training_screen, without
from dvfl.federation.party.runtime import Surroundings, worked
from dvfl.federation.party.tasks import within
from dvfl.federation.protocol.prediction_limits import GUESTS_SHARE, check_slots
from dvfl.federation.protocol.wire import Ask, BadMessage, Fresh, Here, Predict, Predicted, Refused, decode, encode
from dvfl.federation.transport.accounts import PREDICT
from dvfl.federation.transport.line import HostLine
from dvfl.parties.screening import Screen

_LOOK_S = 0.3  # between two looks whether a guest is there
_SILENCE_S = 0.9  # after which one that does not answer is not
_FROZE_S = 1.0  # between two looks whether it has frozen
_MOST_S = 60.0  # for an answer, whatever was asked

Slots = NDArray[np.int32]


class HostAnswers:
    """Holds no lock: what it reads of a frozen host changes by its own writes alone."""

    def __init__(self, party: HostParty, line: HostLine, here: Surroundings) -> None:
        self._party, self._line, self._here = party, line, here
        self._heard: dict[str, float] = {}  # when each guest last answered anything
        self._away: set[str] = set()  # guests that did not answer the last time: nobody waits for them
        self._vouching = Vouching()
        self._screen: Screen | None = None  # before it is made, and where there are too few rows to make it from
        self._screened = ""  # hash of the frozen host that it is of

    async def serve(self) -> None:
        """Answers from now on."""
        await self._line.serve(PREDICT, self._answer)

    async def watch(self) -> None:
        """Asks every guest of the plan again and again whether it is there."""
        looking: dict[str, asyncio.Task[None]] = {}
        while True:
            for guest in self._party.guests:
                if guest not in looking or looking[guest].done():
                    looking[guest] = asyncio.create_task(self._look(guest))
            await asyncio.sleep(_LOOK_S)

    async def learn_usual(self) -> None:
        """Makes the screen anew whenever the host has frozen."""
        while True:
            frozen = self._party.answering()
            if frozen is not None and frozen.hash != self._screened:
                screen = await self._here.work(partial(training_screen, frozen))
                self._screen, self._screened = screen, frozen.hash
            await asyncio.sleep(_FROZE_S)

    def vouched_s(self) -> float:
        """How long ago all guests said that nothing has changed since the host froze; -1: one does not."""
        frozen = self._party.answering()
        whole = frozen is not None and len(frozen.guests) == self._party.pinned
        return self._vouching.since_all_s(frozen, _now()) if whole else -1.0

    async def _look(self, guest: str) -> None:
        began = _now()
        reply = await self._line.ask(guest, _ARE_YOU_THERE, _SILENCE_S)
        if reply is None:
            self._vouching.silent(guest)
        else:
            self._heard[guest] = _now()
            try:
                here = decode(reply, Here)
                self._party.seen(guest, here)
                self._vouching.said(self._party.answering(), guest, here, began)
            except BadMessage as error:
                self._party.drop(guest, error)
        there = self._heard.get(guest, -math.inf) >= began  # it may have answered another question meanwhile
        (self._away.discard if there else self._away.add)(guest)
        (self._party.up.add if there else self._party.up.discard)(guest)

    async def _answer(self, data: bytes) -> bytes:
        try:
            asked = decode(data, Predict)
            frozen = self._party.answering()
            if frozen is None or (asked.run, asked.frozen) != (frozen.plan.run, frozen.hash):
                return encode(Refused("not frozen" if frozen is None else "another run, or frozen anew"))
            check_slots(frozen.plan, asked)
        except BadMessage as error:
            self._party.drop("the owner", error)
            return encode(Refused(str(error)[:200]))
        vouched = self._vouching.of(frozen, asked.slots, _now())
        wanted = self._wanted(frozen, asked.slots, vouched)
        fresh = await self._fresh(frozen, asked, wanted) if wanted else {}
        now_ms = self._here.now_ms()
        found = gathered(frozen, asked.slots, fresh, vouched, now_ms)
        names = [guest.name for guest in frozen.plan.guests]
        if any(len(answer.slots) for answer in fresh.values()):
            named = await self._suspects(frozen, asked, found)
            if named is None:  # there was no time to look: better what was there before
                fresh, named = {}, []
                found = gathered(frozen, asked.slots, fresh, vouched, now_ms)
            elif named:
                found = without(found, named)
                fresh = {guest: answer for guest, answer in fresh.items() if names.index(guest) not in named}
        current = [name for name, counts in zip(names, vouched.counts, strict=True) if counts]
        if fresh and frozen.done and self._party.frozen == frozen.hash:
            keep(frozen, fresh, now_ms)
            for guest, answer in fresh.items():
                self._vouching.kept(frozen, wanted[guest], answer)
            current += fresh
        for guest in current:
            self._party.refreshed(guest, now_ms=now_ms)
        task = partial(frozen.training.encoded, found.b, found.present)
        values = await worked(self._here, len(asked.slots), task)
        run, name = frozen.plan.run, self._party.name
        return encode(Predicted(name, run, frozen.hash, asked.slots, values, found.states, found.ages))

    async def _suspects(self, frozen: Frozen, asked: Predict, found: Gathered) -> list[int] | None:
        """The guests whose answers cannot be right; None where that is not known in time."""
        if self._screen is None or self._screened != frozen.hash:
            return []
        left_s = SHARE * min(_MOST_S, asked.left_ms / 1000)
        return await within(left_s, self._here.work(partial(suspects, self._screen, frozen, found)))

    def _wanted(self, frozen: Frozen, slots: Slots, vouched: Vouched) -> dict[str, Slots]:
        """The slots that guests must be asked for, of those that may be there."""
        unknown = (vouched.marks == UNKNOWN) | ~vouched.counts
        if not unknown.any():
            return {}
        found = {}
        for guest, wanted in zip(frozen.plan.guests, unknown.T, strict=True):
            own = frozen.guests.get(guest.name)
            if own is not None and own.encoder and guest.name not in self._away and wanted.any():
                found[guest.name] = slots[wanted]
        return found

    async def _fresh(self, frozen: Frozen, asked: Predict, wanted: Mapping[str, Slots]) -> dict[str, Fresh]:
        """What guests answer in their part of the time."""
        left_s = GUESTS_SHARE * min(_MOST_S, asked.left_ms / 1000)
        questions = [encode(Ask(frozen.plan.run, round(1000 * left_s), slots)) for slots in wanted.values()]
        asking = [
            within(left_s, self._line.ask(guest, question, left_s))
            for guest, question in zip(wanted, questions, strict=True)
        ]
        replies = await asyncio.gather(*asking)
        found = {}
        for guest, reply in zip(wanted, replies, strict=True):
            if reply is None:
                continue
            self._heard[guest] = _now()
            try:
                answer = decode(reply, Fresh, Refused)
                if isinstance(answer, Refused):  # it is still training, or has lost its weights
                    continue
                check_fresh(frozen, guest, wanted[guest], answer)
                found[guest] = answer
            except BadMessage as error:
                self._party.drop(guest, error)
        return found


def _now() -> float:
    return asyncio.get_running_loop().time()


_ARE_YOU_THERE = encode(Ask("", 0, np.zeros(0, np.int32)))
