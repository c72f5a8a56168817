"""Where a guest answers the owner's letters: who asks is checked, long work is done once however often it is asked."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import numpy as np

from dvfl.align.tasks import BadTask, Guest, Task
from dvfl.errors import RunFailed, UserError
from dvfl.federation.keys.sealing import Identity, Seal, met
from dvfl.federation.party.runtime import Surroundings
from dvfl.federation.protocol.alignment_codec import Answer, Outcome, answer_bytes, read_task
from dvfl.federation.protocol.wire import BadMessage, Introduce, Letter, Refused, Reply, decode, encode
from dvfl.federation.transport.line import REQUEST_S

INTRODUCE = "introduce yourself"  # what a guest that was started again says to a letter
_PATIENCE_S = REQUEST_S - 2.0  # then the owner is told to ask again
_SEALS = 8  # introductions that are remembered
_ANSWERS = 16  # that may have been lost on their way

Key = tuple[bytes, int, str, int]
Name = TypeVar("Name")
Thing = TypeVar("Thing")


class Desk:
    """Answers introductions and letters of the owner, in whatever order they come."""

    def __init__(
        self,
        own: Identity,
        owner: str,
        guest_of: Callable[[int], Guest],  # for a round of alignment; called in a thread
        here: Surroundings,
        drop: Callable[[str, object], None],  # notes what was not believed
    ) -> None:
        self._own, self._owner, self._guest_of, self._here, self._drop = own, owner, guest_of, here, drop
        self._seals: OrderedDict[str, Seal] = OrderedDict()
        self._guests: dict[int, Guest] = {}
        self._making = asyncio.Lock()
        self._work: OrderedDict[Key, asyncio.Task[Answer]] = OrderedDict()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def know(self, round: int, guest: Guest) -> None:
        """Who answers in a round, where that is known already."""
        self._guests[round] = guest

    def forget(self, round: int) -> None:
        """Lets go of a round's ids; should anybody ask again, they are read again."""
        self._guests.pop(round, None)

    async def answer(self, data: bytes) -> bytes:
        """The answer to whatever came."""
        try:
            message = decode(data, Introduce, Letter)
            if isinstance(message, Introduce):
                seal, introduced = met(self._own, self._owner, message, datetime.now(UTC))
                _remember(self._seals, message.session, seal, _SEALS)
                return encode(introduced)
            known = self._seals.get(message.session)
            if known is None:
                return encode(Refused(INTRODUCE))
            task = read_task(known.open(message.content.tobytes()))
        except BadMessage as error:
            self._drop(self._owner, error)
            return encode(Refused(str(error)[:200]))
        content = known.close(answer_bytes(await self._done(task)))
        return encode(Reply(message.session, np.frombuffer(content, np.uint8)))

    async def _done(self, task: Task) -> Answer:
        key = task.session, task.round, task.kind, task.number
        work = self._work.get(key)
        if work is None:
            work = asyncio.create_task(self._do(task))
            _remember(self._work, key, work, _ANSWERS)
        try:
            return await asyncio.wait_for(asyncio.shield(work), _PATIENCE_S)
        except TimeoutError:
            return Answer(Outcome.WAIT)

    async def _do(self, task: Task) -> Answer:
        try:
            async with self._making:
                if task.round not in self._guests:
                    self._guests[task.round] = await self._here.work(partial(self._guest_of, task.round))
            return Answer(Outcome.DONE, await self._here.work(partial(self._guests[task.round].answer, task)))
        except BadTask as error:
            return Answer(Outcome.REFUSED, str(error)[:200].encode())
        except (UserError, RunFailed) as error:  # the guest's own trouble: it ends with it, and says what it is
            if not self.failed.done():
                self.failed.set_exception(error)
            raise


def _remember(kept: OrderedDict[Name, Thing], name: Name, thing: Thing, most: int) -> None:
    kept[name] = thing
    while len(kept) > most:
        kept.popitem(last=False)
