"""A host while it answers the owner's predictions: asks the guests that are there, and waits for none past its time."""

import asyncio
import math
from functools import partial

import numpy as np

from dvfl.federation.accounts import PREDICT
from dvfl.federation.answering import GUESTS_SHARE, check_fresh, check_slots, gathered, keep
from dvfl.federation.host import Frozen, HostParty
from dvfl.federation.line import HostLine
from dvfl.federation.surroundings import Surroundings, worked
from dvfl.federation.tasks import within
from dvfl.federation.wire import Ask, BadMessage, Fresh, Predict, Predicted, Refused, decode, encode

_LOOK_S = 0.4  # between two looks whether a guest is there
_SILENCE_S = 1.0  # after which one that does not answer is not
_MOST_S = 60.0  # for an answer, whatever was asked


class HostAnswers:
    """Holds no lock: what it reads of a frozen host changes by its own writes alone."""

    def __init__(self, party: HostParty, line: HostLine, here: Surroundings) -> None:
        self._party, self._line, self._here = party, line, here
        self._heard: dict[str, float] = {}  # when each guest last answered anything
        self._away: set[str] = set()  # guests that did not answer the last time: nobody waits for them

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

    async def _look(self, guest: str) -> None:
        began = _now()
        if await self._line.ask(guest, _ARE_YOU_THERE, _SILENCE_S) is not None:
            self._heard[guest] = _now()
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
        fresh = await self._fresh(frozen, asked)
        now_ms = self._here.now_ms()
        found = gathered(frozen, asked.slots, fresh, now_ms)
        if frozen.done and self._party.frozen == frozen.hash:
            keep(frozen, fresh, now_ms)
            for guest in fresh:
                self._party.refreshed(guest, now_ms=now_ms)
        task = partial(frozen.training.encoded, found.b, found.present)
        values = await worked(self._here, len(asked.slots), task)
        run, name = frozen.plan.run, self._party.name
        return encode(Predicted(name, run, frozen.hash, asked.slots, values, found.states, found.ages))

    async def _fresh(self, frozen: Frozen, asked: Predict) -> dict[str, Fresh]:
        """What guests that may be there answer in their part of the time."""
        left_s = GUESTS_SHARE * min(_MOST_S, asked.left_ms / 1000)
        question = encode(Ask(frozen.plan.run, round(1000 * left_s), asked.slots))
        guests = [guest for guest, own in frozen.guests.items() if own.encoder and guest not in self._away]
        asking = [within(left_s, self._line.ask(guest, question, left_s)) for guest in guests]
        replies = await asyncio.gather(*asking)
        found = {}
        for guest, reply in zip(guests, replies, strict=True):
            if reply is None:
                continue
            self._heard[guest] = _now()
            try:
                answer = decode(reply, Fresh, Refused)
                if isinstance(answer, Refused):  # it is still training, or has lost its weights
                    continue
                check_fresh(frozen, guest, asked, answer)
                if len(answer.slots):
                    found[guest] = answer
            except BadMessage as error:
                self._party.drop(guest, error)
        return found


def _now() -> float:
    return asyncio.get_running_loop().time()


_ARE_YOU_THERE = encode(Ask("", 0, np.zeros(0, np.int32)))
